"""What an activity is given, and what it may say instead of a result.

A directive is not a failure: the step is suspended with its checkpoint, the attempt is rolled back, and any worker
goes on later from what was stored.
"""

import asyncio
import builtins
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from kernel.model import Resume

T = TypeVar("T")
Checkpoint = Mapping[str, Any] | msgspec.Struct


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for `delay_s` seconds, then call the activity again with `checkpoint`."""

    delay_s: float
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class WaitForSignal:
    """Wait for the signal `(signal_type, key, generation)`.

    `poll_fallback_s` is a check at that time, not a timeout: the activity wakes and reads the business fact again.
    """

    signal_type: str
    key: str
    generation: int = 0
    poll_fallback_s: float | None = None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class Yield:
    """Go on at once, but let others have the slot first."""

    checkpoint: Checkpoint | None = None


Directive = Sleep | WaitForSignal | Yield
Outcome = Directive | Mapping[str, Any] | msgspec.Struct | None


class TextSink(Protocol):
    """Where a streaming step writes its text. Nothing written here changes a business result."""

    async def write(self, text: str) -> None:
        """Append text; gathered for a short time before it is sent."""
        ...

    async def flush(self) -> None:
        """Send what has been gathered."""
        ...


@dataclass(slots=True)
class WorkflowContext:
    """What a finalizer is given, and the part every activity shares."""

    workflow_id: str
    biz_key: str
    type: str
    round: int
    run: int
    priority: int
    input: Mapping[str, Any]
    outputs: Mapping[str, Any]
    error: str | None
    now: Callable[[], datetime]  # database time
    prepared: Any = None  # what prepare_context returned

    def load_input(self, kind: builtins.type[T]) -> T:
        """The input as `kind`; raises msgspec.ValidationError where it does not fit."""
        return msgspec.convert(dict(self.input), kind)

    def load_output(self, step: str, kind: builtins.type[T]) -> T:
        """The output of a completed step as `kind`."""
        return msgspec.convert(self.outputs[step], kind)


@dataclass(slots=True, kw_only=True)
class StepContext(WorkflowContext):
    """What an activity is given for one call."""

    step: str
    attempt: int
    checkpoint: Mapping[str, Any] | None = None
    resume: Resume | None = None
    open_stream: Callable[[], Awaitable[TextSink]] = field(repr=False)
    """Opens the client stream of this workflow and round, after a Reset: readers discard what an earlier try wrote."""

    def load_checkpoint(self, kind: builtins.type[T]) -> T | None:
        """The checkpoint as `kind`, or None at the first call."""
        return None if self.checkpoint is None else msgspec.convert(dict(self.checkpoint), kind)


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run blocking work in a thread, and wait for it even when cancelled: a thread cannot be ended from outside."""
    work = asyncio.get_running_loop().run_in_executor(None, function, *args)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise
