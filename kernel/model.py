"""The documents of the kernel as Structs, their states, and which status may follow which.

`NEXT` is the table of legal transitions; the store builds its conditions from it, so that the table *is* the filter.
Instants are timezone-aware UTC datetimes of the database's clock; durations carry their unit in the name.
"""

from base64 import b32encode
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

import msgspec

FAR_FUTURE = datetime(9999, 12, 31, tzinfo=UTC)
"""`claimable_time` of an instance that no clock wakes. Never absent: a missing date sorts before every date."""


class Status(StrEnum):
    """Status of an instance."""

    RUNNING = "running"
    WAITING = "waiting"
    FAILING = "failing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


class StepStatus(StrEnum):
    """Status of one step."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    FAILED = "failed"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELED})
CLAIMABLE = frozenset({Status.RUNNING, Status.FAILING})
DONE = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED})
SETTLED = DONE | {StepStatus.FAILED}

NEXT: dict[Status, frozenset[Status]] = {
    Status.RUNNING: frozenset({Status.RUNNING, Status.WAITING, Status.FAILING, Status.COMPLETED, Status.CANCELED}),
    Status.WAITING: frozenset({Status.RUNNING, Status.CANCELED}),
    Status.FAILING: frozenset({Status.FAILING, Status.FAILED, Status.CANCELED}),
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset({Status.RUNNING}),
    Status.CANCELED: frozenset(),
}


def workflow_id_of(biz_key: str) -> str:
    """The primary key that makes `biz_key` unique for ever, over shards too."""
    digest = sha256(biz_key.encode()).digest()[:20]
    return "wf_" + b32encode(digest).decode().lower()


class Wait(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a waiting step waits for. A timer wait names no signal."""

    kind: str  # signal | timer
    signal_type: str = ""
    wait_key: str = ""
    generation: int = 0


class Resume(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a step last woke; carries no business data."""

    kind: str  # timer | signal | poll
    signal_id: str = ""


class StepState(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One step of an instance. `attempt` counts entries into business code, `failures` the errors among them."""

    status: StepStatus = StepStatus.PENDING
    attempt: int = 0
    failures: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    elapsed_ms: int = 0
    traffic_wait_ms: int = 0
    traffic_waits: int = 0
    traffic_reason: str | None = None  # while refused: "limit" or "unreachable"
    traffic_since: datetime | None = None
    waits: int = 0
    error: str | None = None
    checkpoint: dict[str, Any] | None = None
    wait: Wait | None = None
    suspended_at: datetime | None = None
    resume: Resume | None = None
    due: datetime | None = None


class Instance(msgspec.Struct, kw_only=True):
    """`workflow_instances`: the only execution truth."""

    workflow_id: str = msgspec.field(name="_id")
    biz_key: str
    type: str
    definition_fingerprint: str
    status: Status
    round: int
    business_priority: int
    input: dict[str, Any]
    step_order: list[str]
    steps: dict[str, StepState]
    output: dict[str, Any]
    opening: str | None = None  # the step that the next claim may start in its own update
    claimable_time: datetime
    claimable_since: datetime | None = None  # when the present claim could have been taken
    claimed_at: datetime | None = None
    claim_token: str = ""
    strikes: int = 0
    parked_at: datetime | None = None
    run: int = 1
    retry_count: int = 0
    finalizer_failures: int = 0
    revision: int = 0
    commit: str = ""
    worker: str = ""
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    error: str | None = None

    @property
    def ended(self) -> bool:
        """Whether a terminal status is committed."""
        return self.status in TERMINAL


class Signal(msgspec.Struct, kw_only=True):
    """`workflow_signals`: one notification. No business payload, ever."""

    signal_id: str = msgspec.field(name="_id")
    workflow_id: str
    signal_type: str
    wait_key: str
    generation: int = 0
    created_at: datetime | None = None
    match_time: datetime | None = None
