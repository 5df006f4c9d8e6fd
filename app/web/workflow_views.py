"""What operators see of workflows, made from the projections' documents. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.acts import AuditEntry

Document = Mapping[str, Any]
ENDED = frozenset({"completed", "failed", "canceled"})


class Waiting(msgspec.Struct, frozen=True):
    """What something waits for, since when, and when it goes on at the latest (None: nobody knows)."""

    kind: str  # queue | signal | timer | retry | permit
    text: str
    since: datetime | None
    until: datetime | None


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
    """One step as it stands. `attempt` counts entries into its code, `failures` the errors among them."""

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


class WorkflowDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One workflow: its row, its input, its steps in order, every attempt in the order they began.

    `audit`: what operators did to it, the latest first.
    """

    workflow: WorkflowRow
    input: Any
    waiting: Waiting | None
    steps: list[StepRow]
    attempts: list[AttemptRow]
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
    snapshot: Document, attempts: Sequence[Document], audit: Sequence[AuditEntry] = ()
) -> WorkflowDetail:
    """Everything about one workflow."""
    steps = [_step_row(name, snapshot["steps"].get(name, {})) for name in snapshot["step_order"]]
    ended = snapshot["status"] in ENDED
    return WorkflowDetail(
        workflow=workflow_row(snapshot),
        input=snapshot.get("input"),
        waiting=None if ended else next((step.waiting for step in steps if step.waiting), None),
        steps=[msgspec.structs.replace(step, waiting=None) for step in steps] if ended else steps,
        attempts=[attempt_row(attempt) for attempt in attempts],
        audit=list(audit),
    )


def _step_row(name: str, step: Document) -> StepRow:
    return StepRow(
        name=name,
        status=step.get("status", "pending"),
        attempt=step.get("attempt", 0),
        failures=step.get("failures", 0),
        waits=step.get("waits", 0),
        elapsed_ms=step.get("elapsed_ms", 0),
        started_at=step.get("started_at"),
        finished_at=step.get("finished_at"),
        error=step.get("error"),
        waiting=waiting_of(step),
        checkpoint=step.get("checkpoint"),
    )


def waiting_of(step: Document) -> Waiting | None:
    """Why a step is not running, from what its last commit left."""
    status, due = step.get("status", "pending"), step.get("due")
    wait, suspended_at = step.get("wait") or {}, step.get("suspended_at")
    if step.get("traffic_reason"):
        text = "a place at a full resource" if step["traffic_reason"] == "limit" else "Redis, to ask for a permit"
        return Waiting("permit", text, step.get("traffic_since"), due)
    if status == "waiting" and wait.get("kind") == "signal":
        return Waiting("signal", f"{wait.get('signal_type')} of {wait.get('wait_key')}", suspended_at, due)
    if status == "waiting":
        return Waiting("timer", "its next look", suspended_at, due)
    if status == "pending" and step.get("failures"):
        return Waiting("retry", "its next try", None, due)
    return None


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
