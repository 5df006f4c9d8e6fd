"""Business writes of a round that is over: each is called on a newer round's object, as by a worker that comes late.

The writes are found by what `@boundary` registered and by their parameter `round`; a new one is tried from its first
day, and must only find its parameters among those that are known here.
"""

import inspect
from collections.abc import Mapping
from typing import Any, get_args

from activities.adapters.sessions import SessionRecords
from activities.adapters.summaries import SummaryRecords
from activities.adapters.transcripts import TranscriptRecords
from activities.payloads import (
    Composed,
    MediaSegment,
    Notes,
    Packaged,
    SessionState,
    SpeechStatus,
    SummaryState,
    TranscriptState,
    Usage,
)
from kernel import StaleRound, faults
from tests.story_kit import Story

ROUND = 2
STORES = {
    "SessionRecords": (SessionRecords, "sessions", SessionState),
    "TranscriptRecords": (TranscriptRecords, "transcripts", TranscriptState),
    "SummaryRecords": (SummaryRecords, "summaries", SummaryState),
}
GIVEN: dict[str, Any] = {
    "round": ROUND - 1,
    "error": "late",
    "text": "late",
    "progress": 99.0,
    "window": 0,
    "status": SpeechStatus("late", "completed"),
    "expected_s": 1.0,
    "following": None,
    "captured_s": 99.0,
    "gaps": [],
    "packaged": Packaged("late", 1.0, 1),
    "composed": Composed("late", [], Usage(), "late"),
    "segment": MediaSegment(99, "http://late.example/99.ts", 1.0),
    "start_s": 99.0,
    "data": b"late",
    "key": "late",
    "notes": Notes(0.0, 1.0),
    "section": 1,
    "sections": 2,
}


def late_writes() -> list[str]:
    """Every marked business write that is made under a round, as `SummaryRecords.mark`."""
    names = dict.fromkeys(point.partition(":")[0] for point in faults.points("activities"))
    return [name for name in names if name.partition(".")[0] in STORES and "round" in _parameters(name)]


def _parameters(name: str) -> Mapping[str, inspect.Parameter]:
    store, method = name.split(".")
    return inspect.signature(getattr(STORES[store][0], method)).parameters


async def changes_nothing(story: Story, name: str) -> bool:
    """Whether the late write changes nothing, whatever the state of the newer round."""
    _, collection, states = STORES[name.partition(".")[0]]
    (found,) = await story.db[collection].find({}).to_list(2)
    for state in get_args(states):
        newer = {**found, "round": ROUND, "state": state}
        await story.db[collection].replace_one({"_id": found["_id"]}, newer)
        segments = await story.db["segments"].count_documents({})
        await _write_late(story, name, found["_id"])
        kept = (
            await story.db[collection].find_one({"_id": found["_id"]}),
            await story.db["segments"].count_documents({}),
        )
        if kept != (newer, segments):
            return False
    return True


async def _write_late(story: Story, name: str, object_id: str) -> None:
    store, method = name.split(".")
    collection = STORES[store][1]
    given = {"state": "live" if collection == "sessions" else "writing", **GIVEN}
    needed = [one.name for one in _parameters(name).values() if one.default is one.empty and one.name != "self"]
    values = {parameter: object_id if parameter.endswith("_id") else given[parameter] for parameter in needed}
    try:
        await getattr(getattr(story, collection), method)(**values)
    except StaleRound:
        return
