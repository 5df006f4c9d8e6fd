"""What operators look at: attempts and snapshots, projected beside the execution and never read by it.

An event is offered after its commit to a bounded queue: full means refused and counted, never blocked, never evicted.
Projections accept only a revision that is not older than theirs, so a late event cannot turn a view back.
"""

import asyncio
import logging
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice

from kernel.model import Instance
from kernel.projections import Projections
from kernel.writes import Document, is_transient

log = logging.getLogger(__name__)
QUEUE_LIMIT = 10_000
BATCH_LIMIT = 500
FLUSH_S = 0.2


@dataclass(frozen=True, slots=True)
class AttemptChange:
    """One step's attempt: fields to set, and durations in ms to add."""

    step: str
    attempt: int
    set: Document
    add: dict[str, int] = field(default_factory=lambda: {})


@dataclass(frozen=True, slots=True)
class Event:
    """A committed instance, and what it says of one attempt."""

    instance: Instance
    change: AttemptChange | None = None


class Observer:
    """The bounded queue of a process and its batch writer."""

    def __init__(self, projections: Projections, worker: str, limit: int = QUEUE_LIMIT) -> None:
        self._projections = projections
        self.worker = worker
        self._limit = limit
        self._queue: deque[Event] = deque()
        self._batch = 0  # events at the head of the queue that were sent, perhaps in vain: they go together again
        self._writing = asyncio.Lock()
        self.dropped = 0
        self.poisoned = 0
        self.outcomes = Counter[tuple[str, str, str]]()
        """Calls of (type, step) by how they ended, since the process began; not read by the execution either."""
        self.activity_ms = Counter[tuple[str, str]]()

    @property
    def depth(self) -> int:
        """Events that wait to be written."""
        return len(self._queue)

    # ---- what the engine says ----

    def started(self, now: Instance, step: str, before: Instance | None) -> None:
        """Business code is entered. `before` is the claimed instance where this is the first entry of its claim:
        only then did the step queue for the claim, and perhaps wait outside before."""
        state = now.steps[step]
        fields: Document = {
            "status": "running",
            "worker": self.worker,
            "started_at": state.started_at,
            "error": None,
            "permit_ms": state.traffic_wait_ms,
        }
        self._offer(now, AttemptChange(step, state.attempt, fields, _entry_times(before, step)))

    def suspended(self, now: Instance, step: str, elapsed_ms: int) -> None:
        """A directive rolled the attempt back: the next poll is the same attempt."""
        fields = {"status": "suspended", "worker": self.worker}
        add = {"activity_ms": elapsed_ms, "polls": 1}
        self._offer(now, AttemptChange(step, now.steps[step].attempt + 1, fields, add))
        self._count(now, step, "suspended", elapsed_ms)

    def completed(self, now: Instance, step: str, elapsed_ms: int) -> None:
        """The step is completed."""
        state = now.steps[step]
        fields = {"status": "completed", "finished_at": now.updated_at, "output": now.output.get(step)}
        self._offer(now, AttemptChange(step, state.attempt, fields, {"activity_ms": elapsed_ms}))
        self._count(now, step, "completed", elapsed_ms)

    def failed(self, now: Instance, step: str, elapsed_ms: int, error: str) -> None:
        """An attempt ended with an error; the step's status says what followed."""
        status = "skipped" if now.steps[step].status == "skipped" else "failed"
        fields = {"status": status, "finished_at": now.updated_at, "error": error}
        self._offer(now, AttemptChange(step, now.steps[step].attempt, fields, {"activity_ms": elapsed_ms}))
        self._count(now, step, status, elapsed_ms)

    def abandoned(self, now: Instance, step: str) -> None:
        """The attempt's worker died: another claim has taken over."""
        fields = {"status": "abandoned", "finished_at": now.updated_at}
        self._offer(now, AttemptChange(step, now.steps[step].attempt, fields))
        self._count(now, step, "abandoned", 0)

    def moved(self, now: Instance) -> None:
        """The instance changed, no attempt did."""
        self._offer(now, None)

    def _offer(self, now: Instance, change: AttemptChange | None) -> None:
        if len(self._queue) >= self._limit:
            self.dropped += 1
        else:
            self._queue.append(Event(now, change))

    def _count(self, now: Instance, step: str, outcome: str, elapsed_ms: int) -> None:
        self.outcomes[now.type, step, outcome] += 1
        self.activity_ms[now.type, step] += elapsed_ms

    # ---- the writer ----

    async def run(self) -> None:
        """Flush until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        """Write what is queued, batch by batch. After a transient error the batch is kept for the next time."""
        async with self._writing:
            await self._flush()

    async def _flush(self) -> None:
        while self._queue:
            self._batch = self._batch or min(BATCH_LIMIT, len(self._queue))
            batch = list(islice(self._queue, self._batch))
            try:
                await self._write(batch)
            except Exception as error:
                if not is_transient(error):
                    raise
                log.debug("observation waits: %s", error)
                return
            for _ in batch:
                self._queue.popleft()
            self._batch = 0

    async def _write(self, batch: list[Event]) -> None:
        """A record that can never be written is found by halving, and dropped alone."""
        try:
            await self._projections.write([(event.instance, event.change) for event in batch])
        except Exception as error:
            if is_transient(error):
                raise
            if len(batch) == 1:
                self.poisoned += 1
                log.warning("an observation of %s cannot be written: %s", batch[0].instance.biz_key, error)
                return
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])


def _entry_times(before: Instance | None, step: str) -> dict[str, int]:
    """Queue and external wait of the entry, in ms."""
    if before is None or before.claimed_at is None or before.claimable_since is None:
        return {}
    times = {"queue_ms": _ms(before.claimed_at - before.claimable_since)}
    state = before.steps[step]
    if (suspended_at := state.suspended_at) is not None and state.resume is not None:
        times["external_ms"] = _ms(before.claimable_since - suspended_at)
    return times


def _ms(delta: timedelta) -> int:
    return max(round(delta.total_seconds() * 1000), 0)
