"""The process behind `baton worker`. Any number of them may run, and each may be killed at any moment."""

import asyncio

from app import wiring
from app.serving import on_end_request
from app.settings import Settings


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT, then give running claims back after their present step."""
    stopping = asyncio.Event()
    on_end_request(stopping)
    async with wiring.worker(settings) as worker:
        working = asyncio.create_task(worker.run())
        ending = asyncio.create_task(stopping.wait())
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        worker.stop()
        await working
