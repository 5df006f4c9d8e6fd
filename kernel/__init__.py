"""The front door of the workflow kernel: everything else is private to the package.

MongoDB keeps every fact that may not be lost, Redis only speeds up what can be rebuilt, any worker can be replaced at
any moment. Execution is at-least-once; the terminal state is exactly one. See README.md beside this file.
"""

from kernel.clock import Clock
from kernel.definition import Backoff, Definition, Plan, Step
from kernel.directives import (
    Outcome,
    Sleep,
    StepContext,
    TextSink,
    WaitForSignal,
    WorkflowContext,
    Yield,
    in_thread,
)
from kernel.errors import (
    ActivityError,
    BrokerUnavailable,
    ClaimLost,
    Fatal,
    IdentityMismatch,
    InvalidDefinition,
    KernelError,
    RetryAfter,
    StaleRound,
    StoreUnavailable,
    TooLarge,
    UnknownStep,
    UnknownType,
    WorkflowCanceled,
)
from kernel.faults import boundary
from kernel.model import Instance, Signal, Status, StepStatus, workflow_id_of
from kernel.parts import Parts, open_parts
from kernel.permits import Limits
from kernel.publisher import Publisher, Started

__all__ = [
    "ActivityError",
    "Backoff",
    "BrokerUnavailable",
    "ClaimLost",
    "Clock",
    "Definition",
    "Fatal",
    "IdentityMismatch",
    "Instance",
    "InvalidDefinition",
    "KernelError",
    "Limits",
    "Outcome",
    "Parts",
    "Plan",
    "Publisher",
    "RetryAfter",
    "Signal",
    "Sleep",
    "StaleRound",
    "Started",
    "Status",
    "Step",
    "StepContext",
    "StepStatus",
    "StoreUnavailable",
    "TextSink",
    "TooLarge",
    "UnknownStep",
    "UnknownType",
    "WaitForSignal",
    "WorkflowCanceled",
    "WorkflowContext",
    "Yield",
    "boundary",
    "in_thread",
    "open_parts",
    "workflow_id_of",
]
