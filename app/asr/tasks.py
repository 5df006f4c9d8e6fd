"""The durable transcription tasks (`asr_tasks`): one method, one atomic write.

A task's id is derived from the client's key, so the primary key is the uniqueness. A task is worked on under a lease of
the database's time; every write of its holder carries the claim token, and a write that misses raises ClaimLost.
"""

import base64
import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Literal

import msgspec
from pymongo import ReturnDocument

from activities.payloads import SpeechSegment
from app.asr.recognition import Step
from kernel.clock import Clock
from kernel.driver import Database
from kernel.errors import ClaimLost
from kernel.faults import boundary
from kernel.writes import Document, due_now, literal, new_token, plain, wrapped

TaskState = Literal["queued", "running", "completed", "failed"]
OPEN = ("queued", "running")
NEVER = datetime(9999, 12, 31, tzinfo=UTC)
STRIKES = 5
"""Claims that ended without any progress; then the task is what ends the process."""


class Failure(msgspec.Struct, frozen=True):
    """Why a task failed. `code` is stable."""

    code: str
    text: str
    retryable: bool


class AsrTask(msgspec.Struct, frozen=True, kw_only=True):
    """A document of `asr_tasks`. `wanted` is the language asked for, `settled` the number of samples dealt with."""

    task_id: str = msgspec.field(name="_id")
    state: TaskState
    wanted: str
    audio_id: str
    language: str | None = None
    segments: list[SpeechSegment] = []
    settled: int = 0
    decoded_s: float = 0.0
    stated_s: float | None = None
    failure: Failure | None = None
    strikes: int = 0
    created_at: datetime


@dataclass
class TaskClaim:
    """The right to work on a task until `expires` on this machine's monotonic clock."""

    task: AsrTask
    token: str
    expires: float
    settled: int = field(init=False)

    def __post_init__(self) -> None:
        self.settled = self.task.settled


def task_id_of(key: str) -> str:
    """The one task id that belongs to an idempotency key."""
    return "asr_" + base64.b32encode(hashlib.sha256(key.encode()).digest()[:20]).decode().lower()


class AsrTasks:
    """The store of tasks."""

    def __init__(self, database: Database, clock: Clock, lease_s: float) -> None:
        self._tasks = database["asr_tasks"]
        self._clock = clock
        self._lease_s = lease_s

    async def prepare(self) -> None:
        """Make the indexes; repeating it changes nothing."""
        async with wrapped():
            await self._tasks.create_index([("state", 1), ("claimable_time", 1)])
            await self._tasks.create_index("audio_id")

    async def find(self, task_id: str) -> AsrTask | None:
        """The task, or None."""
        async with wrapped():
            return _task(await self._tasks.find_one({"_id": task_id}))

    async def uses(self, audio_id: str) -> bool:
        """Whether an open task needs that audio."""
        async with wrapped():
            return await self._tasks.find_one({"audio_id": audio_id, "state": {"$in": [*OPEN]}}, {"_id": 1}) is not None

    async def counts(self) -> dict[str, int]:
        """How many tasks are queued and running."""
        async with wrapped():
            return {state: await self._tasks.count_documents({"state": state}) for state in OPEN}

    @boundary
    async def create(self, task_id: str, wanted: str, audio_id: str) -> AsrTask:
        """Make the task unless it exists. It is ours if it holds our `audio_id`."""
        fresh = {"_id": literal(task_id), **self._fresh(wanted, audio_id), "created_at": self._clock.now}
        absent = {"$eq": [{"$type": "$created_at"}, "missing"]}
        update = [{"$replaceWith": {"$cond": [absent, fresh, "$$ROOT"]}}]
        async with wrapped():
            document = await self._tasks.find_one_and_update(
                {"_id": task_id}, update, upsert=True, return_document=ReturnDocument.AFTER
            )
        return _existing(document)

    @boundary
    async def revive(self, task_id: str, wanted: str, audio_id: str) -> bool:
        """Queue a task again that failed for a reason that may have passed. False: it is in no such state."""
        condition = {"_id": task_id, "state": "failed", "failure.retryable": True}
        return await self._change(condition, self._fresh(wanted, audio_id))

    def _fresh(self, wanted: str, audio_id: str) -> Document:
        values = {
            "state": "queued",
            "wanted": wanted,
            "audio_id": audio_id,
            "language": None,
            "segments": [],
            "settled": 0,
        }
        rest = {
            "decoded_s": 0.0,
            "stated_s": None,
            "failure": None,
            "strikes": 0,
            "claim_token": "",
            "finished_at": None,
        }
        fixed = {name: literal(value) for name, value in (values | rest).items()}
        return fixed | {"claimable_time": self._clock.now, "updated_at": self._clock.now}

    @boundary
    async def claim(self) -> TaskClaim | None:
        """Take the oldest task that nobody works on, or whose holder has let its lease run out."""
        sent, token = monotonic(), new_token()
        update = {
            "state": literal("running"),
            "strikes": {"$cond": [{"$eq": ["$claim_token", ""]}, "$strikes", {"$add": ["$strikes", 1]}]},
            "claim_token": literal(token),
            "claimable_time": self._clock.after(self._lease_s),
            "updated_at": self._clock.now,
        }
        async with wrapped():
            document = await self._tasks.find_one_and_update(
                {"state": {"$in": [*OPEN]}, **due_now(self._clock)},
                [{"$set": update}],
                sort=[("created_at", 1)],
                return_document=ReturnDocument.AFTER,
            )
        return TaskClaim(_existing(document), token, sent + self._lease_s) if document else None

    @boundary
    async def renew(self, claim: TaskClaim) -> None:
        """Keep the lease."""
        sent = monotonic()
        await self._write(claim, {"claimable_time": self._clock.after(self._lease_s)})
        claim.expires = sent + self._lease_s

    @boundary
    async def store_progress(self, claim: TaskClaim, step: Step) -> None:
        """Append what a step recognised. Repeating it after an unknown outcome appends nothing twice."""
        sent = monotonic()
        changes = {
            "segments": {"$concatArrays": ["$segments", literal([plain(segment) for segment in step.segments])]},
            "settled": literal(step.settled),
            "language": literal(step.language),
            "decoded_s": literal(step.decoded_s),
            "stated_s": literal(step.stated_s),
            "strikes": literal(0),
            "claimable_time": self._clock.after(self._lease_s),
        }
        if not await self._change(self._held(claim) | {"settled": claim.settled}, changes):
            await self._confirm(claim, step)
        claim.settled, claim.expires = step.settled, sent + self._lease_s

    @boundary
    async def complete(self, claim: TaskClaim) -> None:
        """The whole text is stored."""
        await self._write(claim, self._ended("completed"))

    @boundary
    async def fail(self, claim: TaskClaim, failure: Failure) -> None:
        """There will be no (more) text."""
        await self._write(claim, self._ended("failed") | {"failure": literal(plain(failure))})

    @boundary
    async def give_back(self, claim: TaskClaim) -> None:
        """Let another process take the task at once; the stored progress stays."""
        freed = {"state": literal("queued"), "claim_token": literal(""), "claimable_time": self._clock.now}
        await self._write(claim, freed)

    def _ended(self, state: TaskState) -> Document:
        over = {"state": state, "claim_token": "", "claimable_time": NEVER}
        return {name: literal(value) for name, value in over.items()} | {"finished_at": self._clock.now}

    async def _write(self, claim: TaskClaim, changes: Document) -> None:
        if not await self._change(self._held(claim), changes):
            raise ClaimLost(f"Another process works on {claim.task.task_id}.")

    async def _confirm(self, claim: TaskClaim, step: Step) -> None:
        """A progress write that missed was either applied before, by ourselves, or somebody else holds the claim."""
        async with wrapped():
            if await self._tasks.find_one(self._held(claim) | {"settled": step.settled}, {"_id": 1}) is None:
                raise ClaimLost(f"Another process works on {claim.task.task_id}.")

    async def _change(self, condition: Document, changes: Document) -> bool:
        async with wrapped():
            result = await self._tasks.update_one(condition, [{"$set": {"updated_at": self._clock.now, **changes}}])
        return result.matched_count == 1

    @staticmethod
    def _held(claim: TaskClaim) -> Document:
        return {"_id": claim.task.task_id, "claim_token": claim.token}


def _task(document: Document | None) -> AsrTask | None:
    return None if document is None else msgspec.convert(document, AsrTask)


def _existing(document: Document) -> AsrTask:
    return msgspec.convert(document, AsrTask)
