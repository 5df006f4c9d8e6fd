"""The only door into business code: a fresh time-out for each call, and no call left running behind it.

After a time-out, or when the claim is lost, the call is cancelled *and awaited*, so that an old attempt does not write
beside a new one. A call that never returns ends the process, so that the lease can run out.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from kernel.errors import ActivityError
from kernel.tasks import end

log = logging.getLogger(__name__)
T = TypeVar("T")
STUCK_AFTER_S = 60.0
CLEAN_UP_S = 10.0  # what a cancelled call may take in peace before it is asked again


class StepTimeout(ActivityError):
    """The call did not end within its time."""


class ActivityAborted(ActivityError):
    """The activity cancelled itself."""


async def invoke(call: Coroutine[Any, Any, T], timeout_s: float) -> T:
    """Run one call of business code. Raises what it raises, or StepTimeout."""
    task = asyncio.create_task(call)
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
    except asyncio.CancelledError:
        await _cancelled(task)
        raise
    if not done:
        await _cancelled(task)
        if task.cancelled() or task.exception() is not None:
            raise StepTimeout(f"the call did not end within {timeout_s:g} s")
    if task.cancelled():
        raise ActivityAborted
    return task.result()


async def _cancelled(task: "asyncio.Task[T]") -> None:
    await _outlast(end(task, again_s=CLEAN_UP_S, within_s=STUCK_AFTER_S))
    if not task.done():
        log.critical(
            "a call ignored its cancellation for %g s; this process ends so that its leases can", STUCK_AFTER_S
        )
        os._exit(70)


async def _outlast(waiting: Awaitable[Any]) -> None:
    """Await through cancellations of our own: the call must be seen to end."""
    inner = asyncio.ensure_future(waiting)
    while not inner.done():
        try:
            await asyncio.shield(inner)
        except asyncio.CancelledError:
            continue
