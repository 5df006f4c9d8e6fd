"""The process behind `baton worker`. Any number of them may run, and each may be killed at any moment."""

import asyncio
import logging

from app import wiring
from app.metrics import serve_worker_metrics
from app.reach import http_fault, without_password
from app.serving import on_end_request
from app.settings import Settings
from kernel.worker import Worker

log = logging.getLogger(__name__)


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT, then give running claims back after their present step."""
    stopping = asyncio.Event()
    on_end_request(stopping)
    async with wiring.worker(settings) as worker:
        working = asyncio.create_task(worker.run())
        asking = asyncio.create_task(check_model(settings))
        ending = asyncio.create_task(stopping.wait())
        listening = _listening(settings, worker, stopping)
        await asyncio.wait({working, ending, *listening}, return_when=asyncio.FIRST_COMPLETED)
        stopping.set()
        asking.cancel()
        worker.stop()
        await working
        await asyncio.gather(ending, *listening)


def _listening(settings: Settings, worker: Worker, stopping: asyncio.Event) -> "list[asyncio.Task[None]]":
    """The listener for `/metrics`, where one is wanted."""
    if settings.metrics == "off" or not settings.metrics_port:
        return []
    return [asyncio.create_task(serve_worker_metrics(settings, worker, stopping))]


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
