"""What must hold when everything has ended, whatever died where: each object, each effect, each permit."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from kernel import workflow_id_of
from tests.chaos.history import History
from tests.chaos.shapes import EFFECTS, HOLDING, LONGEST_SLEEP_S, TASKS, biz_key_of, expected_state
from tests.chaos.windows import Span, most_at_once, most_starts
from tests.chaos.world import LIMITS, PERMIT_LEASE_S

Document = dict[str, Any]

PAGE = 200
EARLIER_MS, LATER_MS = 100, (PERMIT_LEASE_S + LONGEST_SLEEP_S + 1.0) * 1000
"""Around a loss of Valkey's memory limits may be exceeded: for one permit lease, and what sleeps under a permit."""


@dataclass
class Verdict:
    """What is wrong, by kind; empty lists are what one hopes for."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    permits: dict[str, str] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.stuck or self.broken)


async def judge(database: Any, history: History, accepted: set[str], losses: list[Span], verdict: Verdict) -> None:
    """Compare everything with what it must be. Objects that are stuck are not judged twice."""
    seen = set[str]()
    async for page in _pages(database["objects"]):
        seen |= {found["_id"] for found in page}
        await _judge_page(database, page, verdict)
    verdict.lost += [f"{object_id} was acknowledged and is not there" for object_id in sorted(accepted - seen)]
    await _judge_signals(database, history, verdict)
    await _judge_permits(database, losses, verdict)
    told = await database["breaches"].find({}).to_list(100)
    verdict.broken += [f"{one['by']}: {one['what']}" for one in told]
    verdict.broken += history.breaches
    verdict.doubled += history.doubled


async def _pages(collection: Any) -> AsyncIterator[list[Document]]:
    after = ""
    while page := await collection.find({"_id": {"$gt": after}}).sort("_id", 1).limit(PAGE).to_list(PAGE):
        yield page
        after = page[-1]["_id"]


async def _judge_page(database: Any, objects: list[Document], verdict: Verdict) -> None:
    ids = [found["_id"] for found in objects]
    keys = [workflow_id_of(biz_key_of(object_id)) for object_id in ids]
    instances = {
        one["_id"]: one for one in await database["workflow_instances"].find({"_id": {"$in": keys}}).to_list(PAGE)
    }
    effects = await _of_objects(database["effects"], ids)
    tasks = await _of_objects(database["tasks"], ids)
    holds = {one["_id"]: one["state"] for one in await database["holds"].find(_rounds_of(objects)).to_list(2 * PAGE)}
    for found, key in zip(objects, keys, strict=True):
        object_id = found["_id"]
        if found["state"] == "working":
            continue
        _judge_end(found, instances.get(key), verdict)
        _judge_effects(found, effects.get(object_id, set()), EFFECTS[found["shape"]], verdict)
        _judge_effects(found, tasks.get(object_id, set()), TASKS.get(found["shape"], set()), verdict)
        if found["shape"] in HOLDING:
            verdict.broken += _holds(found, holds)


async def _of_objects(collection: Any, ids: list[str]) -> dict[str, set[str]]:
    """Short keys by object."""
    found: dict[str, set[str]] = {}
    async for one in collection.find({"object_id": {"$in": ids}}):
        found.setdefault(one["object_id"], set()).add(one["_id"].removeprefix(f"{one['object_id']}/"))
    return found


def _rounds_of(objects: list[Document]) -> Document:
    names = [f"{found['_id']}:{round}" for found in objects for round in range(1, found["round"] + 1)]
    return {"_id": {"$in": names}}


def _judge_end(found: Document, instance: Document | None, verdict: Verdict) -> None:
    """One instance, ended as the object, in the object's round."""
    object_id, state = found["_id"], found["state"]
    expected = expected_state(found["shape"])
    if state != expected and not (state == "canceled" and found["remove_at"] is not None):
        verdict.lost.append(f"{object_id} should have been {expected} and is {state}: {instance and instance['error']}")
    if instance is None:
        if state != "canceled":  # removed before it was registered: there is nothing to cancel
            verdict.lost.append(f"{object_id} is {state} and has no workflow")
        return
    if not _agree(state, instance):
        verdict.broken.append(f"{object_id} is {state}, its workflow {instance['status']}: {instance['error']}")
    if instance["round"] != found["round"] and state != "canceled":
        verdict.broken.append(f"{object_id} is in round {found['round']}, its workflow in {instance['round']}")
    if instance["claim_token"]:
        verdict.broken.append(f"the workflow of {object_id} has ended and is still claimed")
    if state == "completed" and found["outputs"] != _outputs(instance):
        verdict.broken.append(f"{object_id} says {found['outputs']}, its workflow {instance['output']}")


def _agree(state: str, instance: Document) -> bool:
    """An object that was removed while its workflow was failing, or writing its result, leaves a failed workflow."""
    return instance["status"] == state or (state, instance["status"]) == ("canceled", "failed")


def _outputs(instance: Document) -> Document:
    return {step: (output or {}).get("did") for step, output in instance["output"].items()}


def _judge_effects(found: Document, done: set[str], wanted: set[str], verdict: Verdict) -> None:
    if done - wanted:
        verdict.doubled.append(f"{found['_id']} ({found['state']}) did {sorted(done - wanted)}, which is not its to do")
    if found["state"] != "canceled" and wanted - done:
        verdict.lost.append(f"{found['_id']} ({found['state']}) never did {sorted(wanted - done)}")


def _holds(found: Document, holds: dict[str, str]) -> Iterator[str]:
    """A completed object keeps the hold of its last round; every other hold has been given back."""
    for round in range(1, found["round"] + 1):
        kept = found["state"] == "completed" and round == found["round"]
        state = holds.get(f"{found['_id']}:{round}")
        if state != ("taken" if kept else "returned"):
            yield f"the hold of {found['_id']} in round {round} is {state}, the object {found['state']}"


async def _judge_signals(database: Any, history: History, verdict: Verdict) -> None:
    """A signal that woke somebody says so; a listener that has heard all it waits for has used every one."""
    async for one in database["workflow_signals"].find({"match_time": None}):
        if one["_id"] in history.woken_by:
            verdict.broken.append(f"signal {one['_id']} woke a step and is not marked as matched")


async def _judge_permits(database: Any, losses: list[Span], verdict: Verdict) -> None:
    excused = [(begin - EARLIER_MS, end + LATER_MS) for begin, end in losses]
    for resource, limits in LIMITS.items():
        grants = await database["grants"].find({"resource": resource}).to_list(None)
        held = [(one["owner"], (one["from_ms"], one["to_ms"])) for one in grants if one["kind"] == "held"]
        starts = [one["at_ms"] for one in grants if one["kind"] == "start"]
        most, at = most_at_once(held, excused)
        fastest, begun = most_starts(starts, 1000, excused)
        allowed, rate = limits.max_concurrency or inf, limits.max_starts_per_second or inf
        verdict.permits[resource] = f"{most} at once of {allowed}, {fastest} starts in a second of {rate}"
        if most > allowed:
            verdict.broken.append(f"{resource}: {most} at once at {at:.0f} ms")
        if fastest > rate:
            verdict.broken.append(f"{resource}: {fastest} starts in the second from {begun:.0f} ms")
