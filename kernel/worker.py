"""A worker process: slots, and the upkeep list that shows every background duty and its period.

A slot comes first, then a candidate from Redis, then the claim in MongoDB, which alone grants execution. With Redis
away, or full and so empty, due instances are claimed from MongoDB directly.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from kernel.claims import Claim
from kernel.definition import Definition, openings
from kernel.engine import Execution
from kernel.errors import BrokerUnavailable, KernelError
from kernel.instances import Instances
from kernel.lanes import Popped
from kernel.model import Instance, Resume, Status
from kernel.mutex import Mutex
from kernel.observation import FLUSH_S, Observer
from kernel.parts import Parts
from kernel.projections import Projections
from kernel.ready import waiting_steps
from kernel.tasks import end
from kernel.writes import new_token

log = logging.getLogger(__name__)
CLAIMS_AT_ONCE = 16  # while each look finds work
STALE_CANDIDATES = 8  # looked at in one round before the slot is given up
SCAN_LIMIT = 500
SCAN_MUTEX_SHARE = 25 / 30  # of the scan period
INCOMPATIBLE_AGAIN_S = 60.0

Duty = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Pace:
    """Lease and periods, in seconds."""

    lease_s: float = 15.0
    poll_s: float = 5.0
    scan_s: float = 30.0
    beat_s: float = 2.0
    recover_s: float = 5.0


class Worker:
    """Runs claims of the definitions it was given, at most `slots` at once."""

    def __init__(
        self,
        name: str,
        parts: Parts,
        definitions: Iterable[Definition],
        projections: Projections,
        mutex: Mutex,
        *,
        slots: int = 8,
        pace: Pace | None = None,
        recover: Iterable[Duty] = (),
    ) -> None:
        self.name = name
        self._parts = parts
        self._definitions = {definition.type: definition for definition in definitions}
        self._served = [(d.type, d.plan.fingerprint) for d in self._definitions.values()]
        self._openings = openings(self._definitions.values())
        self._projections = projections
        self._mutex = mutex
        self.slots = slots
        self._pace = pace or Pace()
        self._recover = list(recover)
        self.observer = Observer(projections, name)
        self._running: dict[asyncio.Task[None], Execution] = {}
        self._stopping = asyncio.Event()
        self._slot_free = asyncio.Event()
        self._page = ""

    # ---- the process ----

    async def run(self) -> None:
        """Work until `stop`, then let the running steps end and drain the observations."""
        duties = [asyncio.create_task(self._every(period_s, duty)) for period_s, duty in self._upkeep()]
        try:
            await self._fill_until_stopped()
            while self._running:
                await asyncio.wait(set(self._running))
        finally:
            await end(*duties)
            await self._farewell()

    def stop(self) -> None:
        """Take no new work; running claims are given back after their present step."""
        self._stopping.set()
        self._slot_free.set()
        for execution in self._running.values():
            execution.stop()

    @property
    def busy(self) -> int:
        """Slots in use."""
        return len(self._running)

    def _upkeep(self) -> list[tuple[float, Duty]]:
        pace = self._pace
        return [
            (FLUSH_S, self.observer.flush),
            (pace.beat_s, self.beat),
            (pace.scan_s, self.scan_in_turn),
            *((pace.recover_s, duty) for duty in self._recover),
        ]

    async def _every(self, period_s: float, duty: Duty) -> None:
        while True:
            await asyncio.sleep(period_s)
            try:
                await duty()
            except KernelError as error:
                log.warning("%s: %s", getattr(duty, "__qualname__", duty), error)
            except Exception:
                log.exception("%s failed and is tried again in %g s", getattr(duty, "__qualname__", duty), period_s)

    async def beat(self) -> None:
        """Show this worker to the operators."""
        await self._projections.beat(self.name, self.slots, self.busy, self.observer.dropped, self.observer.depth)

    async def _farewell(self) -> None:
        with suppress(KernelError):
            await self.observer.flush()
            await self._projections.forget_worker(self.name)

    # ---- filling slots ----

    async def _fill_until_stopped(self) -> None:
        async with self._parts.wakeups.subscribe() as bell:
            while not self._stopping.is_set():
                self._slot_free.clear()
                next_s = await self._fill_safely()
                if len(self._running) >= self.slots:
                    await self._slot_free.wait()
                else:
                    await self._first_of(bell.wait(next_s), self._slot_free.wait())

    @staticmethod
    async def _first_of(*calls: Awaitable[object]) -> None:
        tasks = [asyncio.ensure_future(call) for call in calls]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _fill_safely(self) -> float:
        try:
            return await self.fill()
        except KernelError as error:
            log.warning("%s finds no work: %s", self.name, error)
        except Exception:
            log.exception("%s could not look for work", self.name)
        return min(self._pace.poll_s, 1.0)

    async def fill(self) -> float:
        """Give work to free slots; seconds until it is worth looking again."""
        wanted = 1
        while (free := self.slots - len(self._running)) > 0 and not self._stopping.is_set():
            looks = (self._fill_one() for _ in range(min(wanted, free)))
            found = await asyncio.gather(*looks, return_exceptions=True)  # a fault of one takes no claim from another
            for one in found:
                if isinstance(one, BaseException):
                    raise one
            idle_s = [one for one in found if isinstance(one, float)]
            if idle_s:
                return min(self._pace.poll_s, *idle_s)
            wanted = min(2 * wanted, CLAIMS_AT_ONCE)
        return self._pace.poll_s

    async def _fill_one(self) -> float | None:
        """Start the next claim; without one, the seconds until it is worth looking again."""
        claim, next_s = await self._next_claim()
        if claim is None:
            return next_s
        self._start(claim)
        return None

    async def _next_claim(self) -> tuple[Claim | None, float]:
        for _ in range(STALE_CANDIDATES):
            popped = await self._pop()
            if popped is None or (popped.workflow_id is None and self._parts.hints.refused):
                return await self._claim_without_redis(), self._pace.poll_s
            if popped.workflow_id is None:
                return None, self._pace.poll_s if popped.next_in_s is None else popped.next_in_s
            claim = await self._claim(popped.workflow_id)
            if claim is not None:
                return claim, 0.0
        return None, 0.0

    async def _pop(self) -> Popped | None:
        """The next candidate; None where Redis is away."""
        try:
            return await self._parts.lanes.pop()
        except BrokerUnavailable:
            return None

    async def _claim(self, workflow_id: str) -> Claim | None:
        """Claim a candidate. One that waits and is due is activated first; one that is due later goes back."""
        sent_at, token, lease_s = monotonic(), new_token(), self._pace.lease_s
        instances = self._parts.instances
        as_who = (self._served, token, self.name, lease_s, self._openings)
        claimed = await instances.claim(workflow_id, *as_who)
        if claimed is None and await self._look_again(workflow_id):
            claimed = await instances.claim(workflow_id, *as_who)
        return await self._granted(claimed, sent_at)

    async def _claim_without_redis(self) -> Claim | None:
        """Any due instance, without the order of lanes; due waits are looked for here, as nobody else hints at them."""
        claim = await self._claim_any()
        if claim is None and await self._activate_all_due():
            claim = await self._claim_any()
        return claim

    async def _claim_any(self) -> Claim | None:
        sent_at, token = monotonic(), new_token()
        as_who = (self._served, token, self.name, self._pace.lease_s, self._openings)
        claimed = await self._parts.instances.claim_any(*as_who)
        return await self._granted(claimed, sent_at)

    async def _granted(self, claimed: Instance | None, sent_at: float) -> Claim | None:
        if claimed is None:
            return None
        await self._parts.hints.due(claimed)  # the next worker looks when this lease runs out
        return Claim(claimed, self._definitions[claimed.type].plan, self._pace.lease_s, sent_at)

    async def _look_again(self, workflow_id: str) -> bool:
        """Why a candidate could not be claimed; True where it was activated just now."""
        found = await self._parts.instances.get(workflow_id)
        if found is None or found.ended or found.parked_at is not None:
            return False
        if found.status is Status.WAITING and await activate_due(self._parts.instances, found):
            return True
        definition = self._definitions.get(found.type)
        if definition is None or definition.plan.fingerprint != found.definition_fingerprint:
            await self._put_off(found, definition)
        else:
            await self._parts.hints.put_back(found)
        return False

    async def _put_off(self, found: Instance, definition: Definition | None) -> None:
        served = definition.plan.fingerprint[:12] if definition else "none"
        stored = found.definition_fingerprint[:12]
        log.warning(
            "%s has fingerprint %s, this worker serves %s: no compatible worker here", found.biz_key, stored, served
        )
        await self._parts.hints.due(found, pause_s=INCOMPATIBLE_AGAIN_S)

    def _start(self, claim: Claim) -> None:
        definition = self._definitions[claim.instance.type]
        execution = Execution(claim, definition, self._parts, self.observer)
        task = asyncio.create_task(execution.run(), name=claim.instance.biz_key)
        self._running[task] = execution
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._slot_free.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s ended unexpectedly and is left to its lease", task.get_name(), exc_info=error)

    # ---- the repair scan ----

    async def scan_in_turn(self) -> None:
        """The scan, by one of all workers in each period."""
        if await self._mutex.take("scan", self._pace.scan_s * SCAN_MUTEX_SHARE):
            await self.scan()

    async def scan(self) -> None:
        """Put back what Redis lost: due instances, due waits, and signals that met nobody."""
        for found in await self._parts.instances.due(self._served, SCAN_LIMIT):
            await self._parts.hints.due(found)
        await self._activate_all_due()
        await self._match_page()
        await self._parts.hints.wake()

    async def _activate_all_due(self) -> int:
        """Activate every wait whose time has come; how many instances that woke."""
        woken = 0
        for found in await self._parts.instances.due_waits(SCAN_LIMIT):
            if await activate_due(self._parts.instances, found):
                await self._parts.hints.due(found)
                woken += 1
        return woken

    async def _match_page(self) -> None:
        """One page of waiting instances against their inbox; the next scan takes the next page."""
        page = await self._parts.instances.waiting_for_signals(self._page, SCAN_LIMIT)
        self._page = page[-1].workflow_id if len(page) == SCAN_LIMIT else ""
        await self._parts.publisher.match_signals([found.workflow_id for found in page])


async def activate_due(instances: Instances, found: Instance) -> bool:
    """Activate the waiting steps whose time has come; whether any was."""
    woken = False
    for name in waiting_steps(found):
        step = found.steps[name]
        if step.wait is not None:
            resume = Resume("timer" if step.wait.kind == "timer" else "poll")
            answer = await instances.activate(found.workflow_id, name, step.wait, resume, due=True)
            woken = woken or answer is not None
    return woken
