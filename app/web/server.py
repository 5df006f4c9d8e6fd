"""The process behind `baton web`. Any number of them may run: they keep nothing."""

from app.serving import on_end_request, serve
from app.settings import Settings
from app.web.application import create_app
from app.wiring import web_parts

GRACE_S = 5
"""Event streams end at once; this is for requests that are still being answered."""


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    async with web_parts(settings) as parts:
        on_end_request(parts.stopping)
        await serve(create_app(parts), settings.host, settings.port, parts.stopping, grace_s=GRACE_S)
