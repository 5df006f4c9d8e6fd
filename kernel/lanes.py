"""The ready queue: four lanes in Redis from which workers take candidates by weighted turns.

It only recommends: a popped workflow runs after the claim in MongoDB has been won, a lost or doubled entry costs
time and never work, and everything here can be rebuilt from the instances.
"""

from datetime import UTC, datetime, timedelta

import msgspec
from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.scripts import Script

WEIGHTS = (8, 6, 4, 2)
"""Turns of each lane in one round, lane 0 (the most urgent) first. A lane with nothing due is passed over."""

BURST = 8
"""After an idle moment this many of lane 0 may go first, before a round of turns begins."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Popped(msgspec.Struct, frozen=True):
    """A candidate; or none, and the seconds until one is due (None: the lanes are empty)."""

    workflow_id: str | None
    next_in_s: float | None


class LaneFigures(msgspec.Struct, frozen=True):
    """One lane at one moment. `ready` + `delayed` = `depth`; `oldest_wait_s` is how long its first ready one waits."""

    lane: int
    depth: int
    ready: int
    delayed: int
    oldest_wait_s: float


class Lanes:
    """The four lanes under one key prefix. Every method raises BrokerUnavailable when Redis does not answer."""

    def __init__(self, redis: Redis, prefix: str, clock: Clock) -> None:
        self._clock = clock
        self._lanes = [f"{{{prefix}:lanes}}:{lane}" for lane in range(len(WEIGHTS))]
        self._round = f"{{{prefix}:lanes}}:round"
        self._enqueue = Script(redis, "lanes_enqueue")
        self._pop = Script(redis, "lanes_pop")
        self._remove = Script(redis, "lanes_remove")
        self._figures = Script(redis, "lanes_figures")

    async def enqueue(
        self, workflow_id: str, priority: int, due: datetime, *, pause_s: float = 0.0, wake: str = ""
    ) -> bool:
        """Queue a workflow to be popped at `due`, but not within `pause_s` from now; True when that changed anything.

        `wake` is the channel on which the workers are woken in the same step.

        It stands in one lane: a more urgent one moves it there, a less urgent one is ignored, and wherever it
        stood, the earlier time stays.
        """
        if not 0 <= priority < len(WEIGHTS):
            raise ValueError(f"priority {priority} has no lane: use 0 (most urgent) to {len(WEIGHTS) - 1}")
        times = _milliseconds(due), self._clock.offset_ms, round(pause_s * 1000)
        return bool(await self._enqueue(self._lanes, workflow_id, priority, *times, wake))

    async def pop(self) -> Popped:
        """Take the next due workflow out of the lanes, or learn how long to sleep at most."""
        taken, *wait = await self._pop([*self._lanes, self._round], self._clock.offset_ms, BURST, *WEIGHTS)
        if taken is not None:
            return Popped(taken.decode(), None)
        return Popped(None, None if wait[0] < 0 else wait[0] / 1000)

    async def remove(self, workflow_id: str) -> bool:
        """Take a workflow out, whichever lane it stands in; True when it stood in one."""
        return bool(await self._remove(self._lanes, workflow_id))

    async def figures(self) -> list[LaneFigures]:
        """Each lane, the most urgent first."""
        rows = await self._figures(self._lanes, self._clock.offset_ms)
        return [
            LaneFigures(lane, depth, ready, depth - ready, waited_ms / 1000)
            for lane, (depth, ready, waited_ms) in enumerate(rows)
        ]


def _milliseconds(due: datetime) -> int:
    if due.tzinfo is None:
        raise ValueError(f"due {due} has no time zone: give an aware datetime")
    return (due - _EPOCH) // timedelta(milliseconds=1)
