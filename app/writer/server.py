"""The process behind `baton writer`. It keeps nothing: any number may run, and one that dies loses only its streams."""

import asyncio

from app.serving import on_end_request, serve
from app.settings import Settings
from app.writer.api import create_app


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    on_end_request(stopping)
    await serve(create_app(settings.writer_chars_per_second, stopping), settings.host, settings.writer_port, stopping)
