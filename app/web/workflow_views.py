"""What operators see of workflows, made from the projections' documents. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.acts import AuditEntry
from kernel.model import CLAIMABLE, DONE, FAR_FUTURE, Signal

Document = Mapping[str, Any]
WAITS = {
    "parked": "an operator who releases it: it stopped making progress",
    "permit": "a place at a full resource",
    "redis": "Redis, to ask for a permit",
    "signal": "{what}",
    "timer": "its next look",
    "retry": "its next try",
    "finalizer": "the next try of its finalizer",
    "queue": "a worker who takes it up",
}
"""What is waited for, in the words of the API."""
ENDED = frozenset({"completed", "failed", "canceled"})


class Waiting(msgspec.Struct, frozen=True):
    """What something waits for, since when, and when it goes on at the latest (None: nobody knows)."""

    kind: str  # one of WAITS
    text: str
    since: datetime | None
    until: datetime | None
    what: str = ""  # the signal that is waited for


class WorkflowRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workflow of the list."""

    workflow_id: str
    biz_key: str
    type: str
    status: str
    step: str | None
    round: int
    run: int
    revision: int
    priority: int
    worker: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    error: str | None


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One step as it stands. `attempt` counts entries into its code, `failures` the errors among them.

    `error`: why it stands so; a step that is done has none, its attempts tell what it got over.
    """

    name: str
    status: str
    attempt: int
    failures: int
    waits: int
    elapsed_ms: int
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    waiting: Waiting | None
    checkpoint: Any


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt and where its time went: in the queue, for a permit, in our code, outside."""

    step: str
    run: int
    attempt: int
    status: str
    worker: str
    started_at: datetime | None
    finished_at: datetime | None
    queue_ms: int
    permit_ms: int
    activity_ms: int
    external_ms: int
    polls: int
    error: str | None
    output: Any


class SignalRow(msgspec.Struct, frozen=True, kw_only=True):
    """One notification, and when a waiting step consumed it (None: nobody has yet)."""

    signal_id: str
    signal_type: str
    wait_key: str
    generation: int
    created_at: datetime | None
    matched_at: datetime | None


class WorkflowDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One workflow: its row, its input, its steps in order, every attempt in the order they began.

    `last_error`: of the latest attempt that failed. `related`: the other workflows of the same session, in the order
    of the work. `signals` and `audit` (what operators did to it): the latest first.
    """

    workflow: WorkflowRow
    input: Any
    waiting: Waiting | None
    last_error: str | None
    steps: list[StepRow]
    attempts: list[AttemptRow]
    signals: list[SignalRow]
    related: list[WorkflowRow]
    audit: list[AuditEntry]


def workflow_row(snapshot: Document) -> WorkflowRow:
    """The row of a snapshot."""
    return WorkflowRow(
        workflow_id=snapshot["workflow_id"],
        biz_key=snapshot["_id"],
        type=snapshot["type"],
        status=snapshot["status"],
        step=snapshot.get("step"),
        round=snapshot["round"],
        run=snapshot["run"],
        revision=snapshot["revision"],
        priority=snapshot.get("business_priority", 0),
        worker=snapshot.get("worker", ""),
        created_at=snapshot["created_at"],
        updated_at=snapshot["updated_at"],
        finished_at=snapshot.get("finished_at"),
        error=snapshot.get("error"),
    )


def workflow_detail(
    snapshot: Document,
    attempts: Sequence[Document],
    *,
    signals: Sequence[Signal] = (),
    related: Sequence[Document] = (),
    audit: Sequence[AuditEntry] = (),
) -> WorkflowDetail:
    """Everything about one workflow."""
    steps = [step_row(name, snapshot["steps"].get(name, {})) for name in snapshot["step_order"]]
    rows, ended = [attempt_row(attempt) for attempt in attempts], snapshot["status"] in ENDED
    return WorkflowDetail(
        workflow=workflow_row(snapshot),
        input=snapshot.get("input"),
        waiting=None if ended else workflow_waits(snapshot, steps),
        last_error=next((row.error for row in reversed(rows) if row.error), None),
        steps=[msgspec.structs.replace(step, waiting=None) for step in steps] if ended else steps,
        attempts=rows,
        signals=[signal_row(signal) for signal in signals],
        related=[workflow_row(one) for one in related],
        audit=list(audit),
    )


def signal_row(signal: Signal) -> SignalRow:
    """The row of a signal."""
    return SignalRow(
        signal_id=signal.signal_id,
        signal_type=signal.signal_type,
        wait_key=signal.wait_key,
        generation=signal.generation,
        created_at=signal.created_at,
        matched_at=signal.match_time,
    )


def step_row(name: str, step: Document) -> StepRow:
    """The row of a step."""
    status = step.get("status", "pending")
    return StepRow(
        name=name,
        status=status,
        attempt=step.get("attempt", 0),
        failures=step.get("failures", 0),
        waits=step.get("waits", 0),
        elapsed_ms=step.get("elapsed_ms", 0),
        started_at=step.get("started_at"),
        finished_at=step.get("finished_at"),
        error=None if status in DONE else step.get("error"),
        waiting=waiting_of(step),
        checkpoint=step.get("checkpoint"),
    )


def workflow_waits(snapshot: Document, steps: Sequence[StepRow]) -> Waiting | None:
    """Why a workflow that has not ended stands still: an operator's turn, a step's wait, or nobody has taken it up."""
    due = snapshot.get("claimable_time")
    if snapshot.get("parked_at"):
        return _waits("parked", snapshot["parked_at"], None)
    if waiting := next((step.waiting for step in steps if step.waiting), None):
        return waiting
    if snapshot.get("finalizer_failures") and not snapshot.get("claimed"):
        return _waits("finalizer", snapshot["updated_at"], due)
    if "claimed" in snapshot and not snapshot["claimed"] and snapshot["status"] in CLAIMABLE:
        return _waits("queue", due, None)
    return None


def waiting_of(step: Document) -> Waiting | None:
    """Why a step is not running, from what its last commit left."""
    status, due = step.get("status", "pending"), step.get("due")
    wait, suspended_at = step.get("wait") or {}, step.get("suspended_at")
    if step.get("traffic_reason"):
        return _waits("permit" if step["traffic_reason"] == "limit" else "redis", step.get("traffic_since"), due)
    if status == "waiting" and wait.get("kind") == "signal":
        return _waits("signal", suspended_at, due, f"{wait.get('signal_type')} of {wait.get('wait_key')}")
    if status == "waiting":
        return _waits("timer", suspended_at, due)
    if status == "pending" and step.get("failures"):
        return _waits("retry", None, due)
    return None


def _waits(kind: str, since: datetime | None, until: datetime | None, what: str = "") -> Waiting:
    return Waiting(kind, WAITS[kind].format(what=what), since, until if until != FAR_FUTURE else None, what)


def attempt_row(attempt: Document) -> AttemptRow:
    """The row of an attempt's document."""
    return AttemptRow(
        step=attempt["step"],
        run=attempt["run"],
        attempt=attempt["attempt"],
        status=attempt.get("status", "running"),
        worker=attempt.get("worker", ""),
        started_at=attempt.get("started_at"),
        finished_at=attempt.get("finished_at"),
        queue_ms=attempt.get("queue_ms", 0),
        permit_ms=attempt.get("permit_ms", 0),
        activity_ms=attempt.get("activity_ms", 0),
        external_ms=attempt.get("external_ms", 0),
        polls=attempt.get("polls", 0),
        error=attempt.get("error"),
        output=attempt.get("output"),
    )
