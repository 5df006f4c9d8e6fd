"""For tests of workflows, here and elsewhere: die at any boundary, let time pass, run a definition to its end.

Everything runs on a real MongoDB and a real Redis. `Fleet` replaces the worker processes: its loops are off, and each
claim is taken and run by hand.
"""

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, TypeVar

from kernel import faults
from kernel.claims import Claim
from kernel.definition import Definition, openings
from kernel.engine import Execution
from kernel.model import FAR_FUTURE, Instance
from kernel.observation import Observer
from kernel.parts import Parts
from kernel.projections import Projections
from kernel.worker import activate_due
from kernel.writes import new_token

LEASE_S = 15.0
MOST_CLAIMS = 200

T = TypeVar("T")


class Crash(BaseException):
    """The process died here."""


@dataclass
class Death:
    """What a `crash_at` saw."""

    point: str
    happened: bool = False
    passed: list[str] = field(default_factory=lambda: [])


@contextmanager
def crash_at(point: str, *, skip: int = 0) -> Generator[Death]:
    """Die at the moment `point` after passing it `skip` times. Once dead, no further boundary is passed."""
    death = Death(point)
    left = skip

    async def hook(passed: str) -> None:
        nonlocal left
        if death.happened:
            raise Crash(f"dead since {point}")
        death.passed.append(passed)
        if passed == point:
            death.happened = left == 0
            left -= 1
            if death.happened:
                raise Crash(point)

    faults.arm(hook)
    try:
        yield death
    finally:
        faults.arm(None)


_held: ContextVar[bool] = ContextVar("held", default=False)


class Pause:
    """A worker that stands still, holding what it holds, until it is released: a zombie.

    It stops at a moment and, from then on, all its tasks stop before whatever they write next, as SIGSTOP would do.
    """

    def __init__(self, point: str, skip: int) -> None:
        self._point, self._left = point, skip
        self.reached = asyncio.Event()
        self.released = asyncio.Event()

    def worker(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin `work` as the worker that is to be held, with all tasks that it begins."""
        context = copy_context()
        context.run(_held.set, True)
        return asyncio.create_task(work, context=context)

    async def __call__(self, passed: str) -> None:
        if not _held.get():
            return
        if passed == self._point and not self.reached.is_set():
            self._left -= 1
            if self._left < 0:
                self.reached.set()
        if self.reached.is_set():
            await self.released.wait()


@contextmanager
def pause_at(point: str, *, skip: int = 0) -> Generator[Pause]:
    """Hold `Pause.worker` where it passes `point` (after `skip` times); everyone else passes freely."""
    pause = Pause(point, skip)
    faults.arm(pause)
    try:
        yield pause
    finally:
        pause.released.set()
        faults.arm(None)


@contextmanager
def fail_at(point: str, error: Exception, *, times: int = 1) -> Generator[None]:
    """Raise `error` at the moment `point`, so many times: a fault of the store, not a death."""
    left = times

    async def hook(passed: str) -> None:
        nonlocal left
        if passed == point and left > 0:
            left -= 1
            raise error

    faults.arm(hook)
    try:
        yield
    finally:
        faults.arm(None)


class Fleet:
    """Runs instances of some definitions to their end, one claim after the other, time travel between them."""

    def __init__(
        self, parts: Parts, definitions: Iterable[Definition], projections: Projections, *, lease_s: float = LEASE_S
    ) -> None:
        self._parts = parts
        self._definitions = {definition.type: definition for definition in definitions}
        self._served = [(d.type, d.plan.fingerprint) for d in self._definitions.values()]
        self._openings = openings(self._definitions.values())
        self._lease_s = lease_s
        self._projections = projections
        self._workers = 0

    async def claim(self, workflow_id: str) -> Execution | None:
        """Take one claim as a new worker."""
        self._workers += 1
        name, sent_at = f"worker-{self._workers}", monotonic()
        as_who = (self._served, new_token(), name, self._lease_s, self._openings)
        found = await self._parts.instances.claim(workflow_id, *as_who)
        if found is None:
            return None
        definition = self._definitions[found.type]
        claim = Claim(found, definition.plan, self._lease_s, sent_at)
        return Execution(claim, definition, self._parts, Observer(self._projections, name))

    async def run(self, workflow_id: str) -> Instance:
        """Claim and run until the instance has ended or waits for something that no clock brings."""
        for _ in range(MOST_CLAIMS):
            await self._parts.publisher.match_signals([workflow_id])
            found = await self._get(workflow_id)
            if found.ended or found.claimable_time >= FAR_FUTURE:
                return found
            await self.skip_to_due(workflow_id)
            await self.claim_and_run(workflow_id)
        raise AssertionError(f"{workflow_id} has not ended after {MOST_CLAIMS} claims: {await self._get(workflow_id)}")

    async def claim_and_run(self, workflow_id: str) -> bool:
        """One claim if it is to be had now, a due wait activated first; whether it was."""
        await activate_due(self._parts.instances, await self._get(workflow_id))
        execution = await self.claim(workflow_id)
        if execution is None:
            return False
        await execution.run()
        await execution.observer.flush()
        return True

    async def skip_to_due(self, workflow_id: str) -> None:
        """Let the time pass until the instance is due."""
        found = await self._get(workflow_id)
        wait_s = (found.claimable_time - self._parts.clock.hint(0)).total_seconds()
        if wait_s > 0:
            self._parts.clock.advance(timedelta(seconds=wait_s + 0.01))

    @property
    def definitions(self) -> list[Definition]:
        """What this fleet runs."""
        return list(self._definitions.values())

    def skip_lease(self) -> None:
        """Let the leases of dead workers run out."""
        self._parts.clock.advance(timedelta(seconds=self._lease_s + 1))

    async def _get(self, workflow_id: str) -> Instance:
        found = await self._parts.instances.get(workflow_id)
        if found is None:
            raise AssertionError(f"there is no instance {workflow_id}")
        return found
