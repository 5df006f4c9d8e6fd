"""Reads every committed write of the run in MongoDB's own order, and judges each.

MongoDB's change stream is the witness: it outlives a kill of the server, and knows nothing of who wrote. From it every
instance is kept as it stood after each write, so that what a worker did can be seen against what was committed then.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from tests.chaos.transitions import ENDED, SETTLED, Document, breaches, claims, id_of_write

WATCHED = ("workflow_instances", "entries", "objects", "marks")
RETRY_S = 0.2


@dataclass
class Tale:
    """One instance so far."""

    document: Document
    writes: set[str] = field(default_factory=set)
    woken_by: set[str] = field(default_factory=set)
    begun: Counter[tuple[int, str]] = field(default_factory=Counter)  # (run, step) → the highest attempt that began


@dataclass(frozen=True)
class TakeOver:
    """A claim that replaced one whose holder had not ended it."""

    biz_key: str
    lost_by: str
    claimed_by: str
    claimed_at: datetime
    late_s: float  # after the lease's end


class History:
    """Follows one database. `breaches` are writes and entries that must not be."""

    def __init__(self, url: str, database: str) -> None:
        self._client: AsyncMongoClient[Document] = AsyncMongoClient(url, serverSelectionTimeoutMS=2000, tz_aware=True)
        self._database = self._client[database]
        self._tales: dict[str, Tale] = {}
        self._marks: dict[str, asyncio.Event] = {}
        self._rounds: dict[str, tuple[int, str]] = {}  # object → round and state
        self.breaches: list[str] = []
        self.doubled: list[str] = []
        self.counts: Counter[str] = Counter()
        self.takeovers: list[TakeOver] = []
        self.woken_by: set[str] = set()

    async def follow(self) -> None:
        """Read until cancelled, through every fault of the server."""
        token = None
        wanted = [{"$match": {"ns.coll": {"$in": [*WATCHED]}}}]
        while True:
            try:
                async with await self._database.watch(wanted, resume_after=token) as stream:
                    async for event in stream:
                        self._take(event)
                        token = stream.resume_token
            except PyMongoError:
                await asyncio.sleep(RETRY_S)

    async def caught_up(self, mark: str) -> None:
        """Return when everything written before this call has been read."""
        seen = self._marks[mark] = asyncio.Event()
        while not seen.is_set():
            await self._database["marks"].insert_one({"mark": mark})
            try:
                await asyncio.wait_for(seen.wait(), 1.0)
            except TimeoutError:
                continue

    async def close(self) -> None:
        await self._client.close()

    # ---- one event ----

    def _take(self, event: Document) -> None:
        match event["ns"]["coll"]:
            case "workflow_instances":
                self._instance(event)
            case "entries":
                self._entry(event["fullDocument"])
            case "objects":
                self._object(event)
            case _:
                self._marks[event["fullDocument"]["mark"]].set()

    def _instance(self, event: Document) -> None:
        workflow_id = event["documentKey"]["_id"]
        tale = self._tales.get(workflow_id)
        if tale is None:
            self._tales[workflow_id] = Tale(event["fullDocument"], {event["fullDocument"]["commit"]})
            self.counts["instances created"] += 1
            return
        old, new = tale.document, applied(tale.document, event)
        tale.document = new
        for breach in breaches(old, new):
            self._complain(new, breach)
        if old["revision"] != new["revision"]:
            self._commit(tale, old, new)

    def _commit(self, tale: Tale, old: Document, new: Document) -> None:
        write = id_of_write(old, new)
        if write in tale.writes:
            self._complain(new, f"write {write} was applied twice")
        tale.writes.add(write)
        self._count(old, new)
        for name, step in new["steps"].items():
            before = old["steps"][name]
            if step["status"] == "running":
                tale.begun[(new["run"], name)] = max(tale.begun[(new["run"], name)], step["attempt"])
            if before["status"] == "waiting" and step["status"] == "pending":
                self._woken(tale, name, step["resume"])

    def _woken(self, tale: Tale, step: str, resume: Document) -> None:
        self.counts[f"woken by {resume['kind']}"] += 1
        if resume["kind"] != "signal":
            return
        self.woken_by.add(resume["signal_id"])
        if resume["signal_id"] in tale.woken_by:
            self.doubled.append(f"{tale.document['biz_key']} {step} was woken twice by {resume['signal_id']}")
        tale.woken_by.add(resume["signal_id"])

    def _count(self, old: Document, new: Document) -> None:
        if claims(old, new):
            self.counts["claims"] += 1
            if old["claim_token"]:
                late_s = (new["claimed_at"] - old["claimable_time"]).total_seconds()
                self.takeovers.append(TakeOver(new["biz_key"], old["worker"], new["worker"], new["claimed_at"], late_s))
                self.counts["attempts abandoned"] += sum(s["status"] == "running" for s in old["steps"].values())
        self.counts["replays"] += new["run"] - old["run"]
        self.counts["parked"] += old["parked_at"] is None and new["parked_at"] is not None
        told_by_step = any(old["steps"][name].get("error") != step.get("error") for name, step in new["steps"].items())
        self.counts["superseded"] += new["status"] == "canceled" and not told_by_step

    def _complain(self, document: Document, what: str) -> None:
        self.breaches.append(f"{document['biz_key']} at revision {document['revision']}: {what}")

    # ---- what workers did ----

    def _entry(self, entry: Document) -> None:
        """An entry needs a committed beginning. After a step's end none begins, so only a sleeper's can come later."""
        tale = self._tales.get(entry["workflow_id"])
        place = (entry["run"], entry["step"])
        if tale is None or entry["attempt"] > tale.begun[place]:
            self.doubled.append(
                f"{entry['by']} entered {entry['biz_key']} {entry['step']} without having begun: {entry}"
            )
            return
        self.counts["entries"] += 1
        step = tale.document["steps"][entry["step"]]
        late = entry["run"] < tale.document["run"] or step["status"] in SETTLED or tale.document["status"] in ENDED
        self.counts["entries of the late"] += late

    def _object(self, event: Document) -> None:
        """A business object ends once in each round, and only a failed one begins another."""
        object_id = event["documentKey"]["_id"]
        changed = event.get("fullDocument") or event["updateDescription"]["updatedFields"]
        dispatched = changed.get("workflow_dispatch.status")
        known = self._rounds.get(object_id)
        self.counts["recovered by a dispatcher"] += dispatched == "processing"
        if known is None:
            self._rounds[object_id] = (changed["round"], changed["state"])
            return
        round, state = changed.get("round", known[0]), changed.get("state", known[1])
        again = known[1] == "failed" and (round, state) == (known[0] + 1, "working")
        if (round, state) != known and known[1] != "working" and not again:
            self.doubled.append(f"{object_id} ended as {known[1]} in round {known[0]}, then was {state} in {round}")
        self._rounds[object_id] = (round, state)


def applied(document: Document, event: Document) -> Document:
    """The document after a change event."""
    if event["operationType"] in ("insert", "replace"):
        return event["fullDocument"]
    described = event["updateDescription"]
    new = _copied(document)
    for path, value in described["updatedFields"].items():
        place, name = _place(new, path)
        place[name] = value
    for path in described["removedFields"]:
        place, name = _place(new, path)
        place.pop(name, None)
    return new


def _place(document: Document, path: str) -> tuple[Document, str]:
    *parents, name = path.split(".")
    for parent in parents:
        document = document.setdefault(parent, {})
    return document, name


def _copied(value: Any) -> Any:
    return {name: _copied(inner) for name, inner in value.items()} if isinstance(value, dict) else value
