"""Ending tasks for certain. One cancellation may be swallowed: clients of MongoDB and Redis do so when an answer or a
fault reaches them in the same moment, and would then go on as if nobody had asked. It is repeated until it is heard.
"""

import asyncio
import logging
from math import inf
from time import monotonic
from typing import Any

log = logging.getLogger(__name__)
AGAIN_S = 1.0


async def end(*tasks: "asyncio.Task[Any]", again_s: float = AGAIN_S, within_s: float = inf) -> None:
    """Cancel these tasks, every `again_s` seconds once more, and return when all have ended or `within_s` is over.

    What they raise is only logged: whoever ends a task has its own reason.
    """
    over_at = monotonic() + within_s
    unfinished = {task for task in tasks if not task.done()}
    while unfinished and monotonic() < over_at:
        for task in unfinished:
            task.cancel()
        _, unfinished = await asyncio.wait(unfinished, timeout=min(again_s, over_at - monotonic()))
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            log.info("%s ended with %r", task.get_name(), error)
