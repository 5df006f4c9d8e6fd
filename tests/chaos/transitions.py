"""What may follow what in the committed life of an instance. Pure; and on purpose not derived from the kernel's code.

Each function takes the document before and after one committed write, and yields what is wrong with it.
"""

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

STATUS = {
    "running": {"running", "waiting", "failing", "completed", "canceled"},
    "waiting": {"running", "canceled"},
    "failing": {"failing", "failed", "canceled"},
    "failed": {"running"},
    "completed": set(),
    "canceled": set(),
}
STEP = {
    "pending": {"pending", "running", "skipped"},
    "running": {"running", "pending", "waiting", "completed", "skipped", "failed"},
    "waiting": {"waiting", "pending", "skipped"},
    "completed": {"completed"},
    "skipped": {"skipped"},
    "failed": {"failed"},
}
ENDED = frozenset({"completed", "failed", "canceled"})
SETTLED = frozenset({"completed", "skipped", "failed"})
NOT_A_STATE = frozenset({"claimable_time", "business_priority"})
"""What may change without a new revision."""


def breaches(old: Document, new: Document) -> Iterator[str]:
    """What is wrong with this write."""
    if old["revision"] == new["revision"]:
        yield from _same_revision(old, new)
        return
    if new["revision"] != old["revision"] + 1:
        yield f"revision {old['revision']} was followed by {new['revision']}"
    if new["status"] not in STATUS[old["status"]]:
        yield f"status {old['status']} was followed by {new['status']}"
    yield from _claim(old, new)
    yield from _run(old, new)


def _same_revision(old: Document, new: Document) -> Iterator[str]:
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    if changed - NOT_A_STATE:
        yield f"{', '.join(sorted(changed))} changed without a new revision"
    if new["claimable_time"] < old["claimable_time"]:
        yield "a lease was shortened"
    if new["business_priority"] > old["business_priority"]:
        yield "a priority was lowered"


def _claim(old: Document, new: Document) -> Iterator[str]:
    """A claim is granted when the one before has ended or its lease has run out, and never on an ended instance."""
    if not claims(old, new):
        return
    if new["claimed_at"] < old["claimable_time"]:
        yield f"claimed at {new['claimed_at']}, due at {old['claimable_time']}"
    if old["status"] not in ("running", "failing"):
        yield f"claimed while {old['status']}"
    if old["parked_at"] is not None:
        yield "claimed while parked"


def claims(old: Document, new: Document) -> bool:
    """Whether this write granted a claim."""
    return bool(new["claim_token"]) and new["claim_token"] != old["claim_token"]


def id_of_write(old: Document, new: Document) -> str:
    """What tells this write from every other: a claim's token, or the commit id. A claim that parks leaves neither."""
    if claims(old, new):
        return new["claim_token"]
    parks = old["parked_at"] is None and new["parked_at"] is not None
    return f"parked at {new['parked_at']}" if parks and old["commit"] == new["commit"] else new["commit"]


def _run(old: Document, new: Document) -> Iterator[str]:
    replayed = old["status"] == "failed" and new["status"] == "running"
    if new["run"] != old["run"] + (1 if replayed else 0):
        yield f"run {old['run']} was followed by {new['run']}"
    if (new["round"] > old["round"]) != replayed:
        yield f"round {old['round']} was followed by {new['round']}"
    for name, before in old["steps"].items():
        after = new["steps"][name]
        complaints = _replayed_step(before, after) if replayed else _step(before, after, old, new)
        yield from (f"step {name}: {complaint}" for complaint in complaints)


def _replayed_step(before: Document, after: Document) -> Iterator[str]:
    """A replay keeps what is done and begins everything else anew."""
    if before["status"] in ("completed", "skipped"):
        if before != after:
            yield "a replay changed a step that was done"
    elif (after["status"], after["attempt"], after["failures"]) != ("pending", 0, 0):
        yield f"a replay left it {after['status']} at attempt {after['attempt']}"


def _step(before: Document, after: Document, old: Document, new: Document) -> Iterator[str]:
    was, now = before["status"], after["status"]
    if now not in STEP[was]:
        yield f"{was} was followed by {now} in the same run"
    if was in SETTLED and before != after:
        yield f"changed after it was {was}"
    started = after["attempt"] == before["attempt"] + 1
    if started and now != "running":
        yield f"an attempt began while it was {now}"
    if started and was == "running" and before["started_at"] >= old["claimed_at"]:
        yield "one claim began it twice"
    if after["attempt"] < before["attempt"] and not (was == "running" and now in ("waiting", "pending")):
        yield f"attempt {before['attempt']} was followed by {after['attempt']} from {was} to {now}"
    if abs(after["attempt"] - before["attempt"]) > 1 or abs(after["failures"] - before["failures"]) > 1:
        yield "a counter jumped"
    if now in ("completed", "failed") and was != now and not old["claim_token"]:
        yield f"{now} without a claim"
