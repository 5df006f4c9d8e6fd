"""The process behind `baton worker`. Any number of them may run, and each may be killed at any moment."""

import asyncio
import logging

from app import wiring
from app.reach import http_fault, without_password
from app.serving import on_end_request
from app.settings import Settings

log = logging.getLogger(__name__)


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT, then give running claims back after their present step."""
    stopping = asyncio.Event()
    on_end_request(stopping)
    async with wiring.worker(settings) as worker:
        working = asyncio.create_task(worker.run())
        asking = asyncio.create_task(check_model(settings))
        ending = asyncio.create_task(stopping.wait())
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        asking.cancel()
        worker.stop()
        await working


async def check_model(settings: Settings) -> None:
    """Say plainly at start when the language model cannot be reached; its summaries wait, and nothing else does."""
    fault = await http_fault(wiring.models_url(settings.openai_base_url), settings.openai_api_key)
    if fault:
        log.warning(
            "the language model at %s does not answer (%s); summaries wait until it does. "
            "Check BATON_OPENAI_BASE_URL and BATON_OPENAI_API_KEY.",
            without_password(settings.openai_base_url),
            without_password(fault),
        )
