"""From an accepted request to a registered workflow, whoever dies in between.

The request path registers and confirms; the recovery finds what it left, in Redis and rarely in MongoDB, takes a lease
for the one object it is about to handle, and does the same. Redis holds candidates only.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any

import msgspec

from kernel.candidates import Candidates
from kernel.definition import Backoff
from kernel.errors import BrokerUnavailable, KernelError
from kernel.intents import DispatchIntent, Intents
from kernel.model import Status
from kernel.mutex import Mutex
from kernel.publisher import Publisher, Started
from kernel.tasks import end
from kernel.writes import new_token

log = logging.getLogger(__name__)
LEASE_S = 30.0
BACKOFF = Backoff(first_s=5.0, factor=2.0, longest_s=300.0)
BATCH = 50
SCAN_EVERY_S = 30.0

Rejected = Callable[[str, int, str], Awaitable[None]]


class AnotherRound(KernelError):
    """Another round of this object is in progress."""


class Dispatcher:
    """Dispatches the intents of one business collection.

    `input_type` reads the stored input back; `rebuild` makes one for a legacy intent without input;
    `rejected(object_id, round, reason)` fails the business object whose workflow can never serve this round.
    """

    def __init__(
        self,
        intents: Intents,
        publisher: Publisher,
        candidates: Candidates,
        mutex: Mutex,
        *,
        biz_key: Callable[[str], str],
        input_type: type[msgspec.Struct],
        rebuild: Callable[[str, int], Awaitable[msgspec.Struct]],
        rejected: Rejected,
        priority: int = 0,
        recovery_priority: int = 3,
    ) -> None:
        self._intents = intents
        self._publisher = publisher
        self._candidates = candidates
        self._mutex = mutex
        self._biz_key = biz_key
        self._input_type = input_type
        self._rebuild = rebuild
        self._rejected = rejected
        self._priority = priority
        self._recovery_priority = recovery_priority

    # ---- the request path ----

    async def dispatch(self, object_id: str, round: int) -> Started | None:
        """Register the workflow of this round and confirm it; None where a recovery is already at it.

        Raises AnotherRound when a newer round has been installed meanwhile.
        """
        found = await self._intents.get(object_id)
        if found is None or found.fencing_token != round:
            raise AnotherRound
        if found.status != "pending":
            return None
        await self._hint(object_id, found.next_attempt_at)
        started = await self._register(object_id, found, self._priority)
        if self._serves(started, round) and not await self._intents.confirm(object_id, round):
            await self._check_round(object_id, round)
        return started

    async def _check_round(self, object_id: str, round: int) -> None:
        found = await self._intents.get(object_id)
        if found is None or found.fencing_token != round:
            raise AnotherRound

    # ---- recovery ----

    async def recover(self, limit: int = BATCH) -> int:
        """Handle due intents; how many were leased. Call it every few seconds from any number of processes."""
        handled = 0
        for object_id in await self._due(limit):
            handled += await self._recover_one(object_id)
        return handled

    async def _due(self, limit: int) -> list[str]:
        popped: list[str] = []
        with suppress(BrokerUnavailable):
            popped = await self._candidates.pop(limit)
        if len(popped) < limit and await self._mutex.take("dispatch", SCAN_EVERY_S):
            popped += await self._intents.due(limit - len(popped))
        return list(dict.fromkeys(popped))

    async def _recover_one(self, object_id: str) -> bool:
        token = new_token()
        leased = await self._intents.lease(object_id, token, LEASE_S)
        if leased is None or leased.claim_token != token:
            return False
        round = leased.fencing_token
        try:
            async with self._kept(object_id, round, token):
                started = await self._register(object_id, leased, self._recovery_priority)
                await self._conclude(object_id, leased, token, started)
        except KernelError as error:
            await self._later(object_id, leased, token, str(error))
        return True

    async def _conclude(self, object_id: str, leased: DispatchIntent, token: str, started: Started) -> None:
        round = leased.fencing_token
        if self._serves(started, round):
            await self._intents.confirm_leased(object_id, round, token)
        elif started.instance.status in (Status.COMPLETED, Status.CANCELED):
            await self._rejected(object_id, round, "not_resumable")
            await self._intents.confirm_leased(object_id, round, token)
        else:
            await self._later(object_id, leased, token, f"round {started.instance.round} has not ended yet")

    async def _later(self, object_id: str, leased: DispatchIntent, token: str, error: str) -> None:
        delay_s = BACKOFF.delay_s(leased.attempts, 0)
        log.warning("dispatch of %s again in %g s: %s", object_id, delay_s, error)
        if await self._intents.give_back(object_id, leased.fencing_token, token, delay_s, error):
            found = await self._intents.get(object_id)
            await self._hint(object_id, found.next_attempt_at if found else None)

    @asynccontextmanager
    async def _kept(self, object_id: str, round: int, token: str) -> AsyncGenerator[None]:
        """Renew the dispatch lease beside a registration that takes long."""

        async def beat() -> None:
            while True:
                await asyncio.sleep(LEASE_S / 3)
                await self._intents.renew(object_id, round, token, LEASE_S)

        heart = asyncio.create_task(beat())
        try:
            yield
        finally:
            await end(heart)

    # ---- shared ----

    async def _register(self, object_id: str, found: DispatchIntent, priority: int) -> Started:
        round = found.fencing_token
        values = await self._input(object_id, found)
        return await self._publisher.start_or_resume(
            found.type,
            self._biz_key(object_id),
            values,
            round=round,
            priority=priority,
            from_step=found.from_step,
        )

    async def _input(self, object_id: str, found: DispatchIntent) -> Any:
        if found.input is None:
            return await self._rebuild(object_id, found.fencing_token)
        try:
            values = msgspec.convert(found.input, self._input_type)
        except msgspec.ValidationError as error:
            raise KernelError(f"the stored input of {object_id} cannot be read: {error}") from error
        if getattr(values, "fencing_token", found.fencing_token) != found.fencing_token:
            raise KernelError(f"the stored input of {object_id} is of another round than its intent")
        return values

    @staticmethod
    def _serves(started: Started, round: int) -> bool:
        return started.instance.round == round

    async def _hint(self, object_id: str, due: datetime | None) -> None:
        if due is not None:
            with suppress(BrokerUnavailable):
                await self._candidates.add(object_id, due)
