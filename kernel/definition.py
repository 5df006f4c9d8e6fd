"""What a workflow is: its steps, their limits, and the fingerprint that ties stored instances to compatible code.

A `Plan` is all a publisher needs to register an instance; a `Definition` adds the functions a worker needs to run it.
"""

import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from kernel.errors import InvalidDefinition, UnknownStep

if TYPE_CHECKING:
    from kernel.directives import Outcome, StepContext, WorkflowContext

STEP_NAME = re.compile(r"[a-z0-9_]{1,40}\Z")
MAX_STEPS = 32
MAX_WAVE = 8

Activity = Callable[["StepContext"], Coroutine[Any, Any, "Outcome"]]
Finalizer = Callable[["WorkflowContext"], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds before the n-th retry: `first_s * factor ** (n - 1)`, at most `longest_s`, spread by `jitter`."""

    first_s: float = 1.0
    factor: float = 2.0
    longest_s: float = 60.0
    jitter: float = 0.2

    def delay_s(self, failures: int, spread: float) -> float:
        """Seconds to wait after `failures` errors; `spread` in -1…1 places the result inside the jitter."""
        plain = min(self.first_s * self.factor ** max(failures - 1, 0), self.longest_s)
        return plain * (1 + self.jitter * spread)


@dataclass(frozen=True, slots=True)
class Plan:
    """The stable protocol of a workflow type: step names in order and what each depends on."""

    type: str
    steps: tuple[str, ...]
    depends_on: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {})

    def dependencies_of(self, step: str) -> tuple[str, ...]:
        """Declared dependencies, or the previous step where none are declared."""
        if step in self.depends_on:
            return self.depends_on[step]
        place = self.steps.index(step)
        return (self.steps[place - 1],) if place else ()

    def from_step(self, first: str) -> frozenset[str]:
        """A step and all that depends on it, directly or not. Raises UnknownStep."""
        if first not in self.steps:
            raise UnknownStep(f"{self.type} has no step {first!r}; there are: {', '.join(self.steps)}")
        found = {first}
        for step in self.steps:  # dependencies come before what depends on them
            if found & set(self.dependencies_of(step)):
                found.add(step)
        return frozenset(found)

    @property
    def opening(self) -> str | None:
        """The one step that a fresh instance begins with; None where several could."""
        roots = [step for step in self.steps if not self.dependencies_of(step)]
        return roots[0] if len(roots) == 1 else None

    @property
    def fingerprint(self) -> str:
        """SHA-256 over length-prefixed type, ordered names and sorted dependencies; nothing else."""
        digest = sha256()
        for part in self._parts():
            raw = part.encode()
            digest.update(len(raw).to_bytes(4, "big"))
            digest.update(raw)
        return digest.hexdigest()

    def _parts(self) -> list[str]:
        parts = [self.type]
        for step in self.steps:
            needs = sorted(self.dependencies_of(step))
            parts += [step, str(len(needs)), *needs]
        return parts


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `max_retry` excludes the first try; `timeout_s` bounds one call, never a wait.

    `resource` names the permit the step needs; `hold="task"` keeps the permit over Sleep, so that it bounds
    external tasks in flight rather than calls.
    """

    name: str
    activity: Activity
    timeout_s: float = 60.0
    max_retry: int = 0
    backoff: Backoff = field(default_factory=Backoff)
    on_failed: Literal["stop", "skip"] = "stop"
    depends_on: tuple[str, ...] | None = None
    resource: str | None = None
    hold: Literal["call", "task"] = "call"


@dataclass(frozen=True, slots=True)
class Definition:
    """A workflow type with its code. `streams=True` says that readers follow its client stream."""

    type: str
    steps: tuple[Step, ...]
    success_finalizer: Finalizer | None = None
    failure_finalizer: Finalizer | None = None
    prepare_context: Callable[[Mapping[str, Any]], Any] | None = None
    tenant_resource: Callable[[Mapping[str, Any]], str] | None = None
    streams: bool = False
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        declared = {step.name: step.depends_on for step in self.steps if step.depends_on is not None}
        plan = Plan(self.type, tuple(step.name for step in self.steps), declared)
        check(plan)
        object.__setattr__(self, "plan", plan)

    def step(self, name: str) -> Step:
        """The step of that name."""
        return next(step for step in self.steps if step.name == name)


def openings(definitions: Iterable[Definition]) -> list[str]:
    """`type/step` of what may be entered without a permit, so that a claim may start it at once."""
    free = (one for one in definitions if one.tenant_resource is None)
    return [f"{one.type}/{step.name}" for one in free for step in one.steps if step.resource is None]


def check(plan: Plan) -> None:
    """Refuse a plan whose names repeat or are malformed, or whose dependencies do not point backwards."""
    if not 1 <= len(plan.steps) <= MAX_STEPS:
        raise InvalidDefinition(f"{plan.type} has {len(plan.steps)} steps; 1 to {MAX_STEPS} are allowed")
    if len(set(plan.steps)) != len(plan.steps):
        raise InvalidDefinition(f"{plan.type} names a step twice: {', '.join(plan.steps)}")
    for place, step in enumerate(plan.steps):
        if not STEP_NAME.match(step):
            raise InvalidDefinition(f"{plan.type}: step name {step!r} is not {STEP_NAME.pattern}")
        for need in plan.dependencies_of(step):
            if need not in plan.steps[:place]:
                raise InvalidDefinition(f"{plan.type}: step {step} depends on {need}, which is not an earlier step")
