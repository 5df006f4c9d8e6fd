"""Keeps a claim's lease alive beside whatever runs under it, and ends that when the claim is lost.

The renewal task outlives every activity's time-out and ends with the claim, not with a call.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

from kernel.claims import Claim
from kernel.errors import ClaimLost, KernelError
from kernel.store import Store
from kernel.tasks import end

log = logging.getLogger(__name__)
RETRY_S = 0.2


@asynccontextmanager
async def kept_alive(claim: Claim, store: Store, renew_holds: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Renew every third of the lease while the body runs; cancel the body and raise ClaimLost when that fails."""
    body = cast("asyncio.Task[None]", asyncio.current_task())  # a coroutine always runs in a task
    lost = False

    async def beat() -> None:
        nonlocal lost
        try:
            while claim.open:
                await asyncio.sleep(claim.lease_s / 3)
                await _renew(claim, store)
                await renew_holds()
        except ClaimLost:
            lost = claim.open
            if lost:
                body.cancel()

    heart = asyncio.create_task(beat())
    try:
        yield
    except asyncio.CancelledError:
        if lost:
            raise ClaimLost from None
        raise
    finally:
        with suppress(asyncio.CancelledError):  # of ours, by a heart that lost the claim just now
            await end(heart)


async def _renew(claim: Claim, store: Store) -> None:
    """One renewal, tried again through transient faults until the lease may have run out."""
    while claim.open:
        try:
            await store.renew(claim)
            return
        except KernelError as error:
            log.warning("renewing %s: %s", claim.instance.workflow_id, error)
            await asyncio.sleep(min(RETRY_S, max(claim.seconds_left, 0)))
            claim.check()
