"""The signal inbox: a notification is stored before anyone is woken, so that an early one waits for its waiter."""

import msgspec
from pymongo import ASCENDING, DESCENDING

from kernel.clock import Clock
from kernel.commits import Commits
from kernel.driver import Database
from kernel.faults import boundary
from kernel.model import Instance, Signal, StepStatus, Wait
from kernel.writes import Document, literal, new_token, plain, wrapped

MOST_PER_WORKFLOW = 100
"""How many unmatched signals of a workflow are looked at, the oldest first.

What lies behind so many that nobody waits for is found by the poll.
"""


class Inbox:
    """`workflow_signals`. Only unmatched ones match: a step that waits again does not find what it consumed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._collection = database["workflow_signals"]
        self._commits = Commits(self._collection)
        self._clock = clock

    async def ensure_indexes(self) -> None:
        """The index that a waiter finds its signals by."""
        await self._collection.create_index([("workflow_id", ASCENDING), ("match_time", ASCENDING)])

    @boundary
    async def insert(self, signal: Signal) -> bool:
        """Store a signal; False where this id is there already, which counts as delivered.

        `delivery` is the mark of the call that stored it.
        """
        delivery = new_token()
        document = {**(plain(signal) or {}), "delivery": delivery}
        missing = {"$eq": [{"$type": "$created_at"}, "missing"]}
        fresh = {"$mergeObjects": [literal(document), {"created_at": self._clock.now}]}
        pipeline: list[Document] = [{"$replaceWith": {"$cond": [missing, fresh, "$$ROOT"]}}]
        async with wrapped():
            ours = await self._commits.apply({"_id": signal.signal_id}, pipeline, upsert=True, delivery=delivery)
        return ours is not None

    @boundary
    async def mark_matched(self, signal_id: str) -> None:
        """Write when a signal was consumed; `resume.signal_id` on the instance is the proof, this the record."""
        async with wrapped():
            await self._commits.apply(
                {"_id": signal_id, "match_time": None}, [{"$set": {"match_time": self._clock.now}}]
            )

    async def of(self, workflow_id: str, limit: int) -> list[Signal]:
        """What was sent to a workflow, matched or not, the latest first."""
        async with wrapped():
            cursor = self._collection.find({"workflow_id": workflow_id}).sort("created_at", DESCENDING).limit(limit)
            found = await cursor.to_list(limit)
        return [msgspec.convert(one, Signal) for one in found]

    async def unmatched(self, workflow_ids: list[str]) -> list[Signal]:
        """Signals for these workflows that nobody has consumed, oldest first."""
        async with wrapped():
            cursor = self._collection.find({"workflow_id": {"$in": workflow_ids}, "match_time": None})
            found = await cursor.sort("created_at", ASCENDING).to_list(MOST_PER_WORKFLOW * len(workflow_ids) or 1)
        return [msgspec.convert(one, Signal) for one in found]


def matching(instance: Instance, signals: list[Signal]) -> list[tuple[str, Wait, Signal]]:
    """For each waiting step the first signal that fits its whole wait: (step, wait, signal)."""
    found: list[tuple[str, Wait, Signal]] = []
    for name in instance.step_order:
        step = instance.steps[name]
        if step.status is not StepStatus.WAITING or step.wait is None or step.wait.kind != "signal":
            continue
        fitting = (signal for signal in signals if fits(step.wait, signal))
        if (signal := next(fitting, None)) is not None:
            found.append((name, step.wait, signal))
    return found


def fits(wait: Wait, signal: Signal) -> bool:
    """Whether the signal is the one that is waited for."""
    return (wait.signal_type, wait.wait_key, wait.generation) == (
        signal.signal_type,
        signal.wait_key,
        signal.generation,
    )
