"""What follows from an error of a step, and of a finalizer. Pure."""

from dataclasses import dataclass
from typing import Literal

from kernel.definition import Backoff, Step
from kernel.errors import Fatal, RetryAfter, StaleRound, WorkflowCanceled

ERROR_LIMIT = 2000
FINALIZER_BACKOFF = Backoff(first_s=1.0, factor=2.0, longest_s=300.0)
FINALIZER_TRIES = 20
LONGEST_RETRY_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """`cancel`, `retry` after `delay_s`, `skip` or `fail`."""

    act: Literal["cancel", "retry", "skip", "fail"]
    delay_s: float = 0.0


def verdict(step: Step, failures: int, error: Exception, spread: float) -> Verdict:
    """What happens after the error that makes `failures` of them in this run; `spread` in -1…1 places the jitter."""
    if isinstance(error, WorkflowCanceled):
        return Verdict("cancel")
    final = isinstance(error, Fatal | StaleRound)
    if not final and failures <= step.max_retry:
        return Verdict("retry", _delay_s(step, failures, error, spread))
    return Verdict("skip" if step.on_failed == "skip" else "fail")


def _delay_s(step: Step, failures: int, error: Exception, spread: float) -> float:
    if isinstance(error, RetryAfter) and error.seconds is not None:
        return min(max(error.seconds, 0.0), LONGEST_RETRY_AFTER_S)
    return step.backoff.delay_s(failures, spread)


def described(error: BaseException) -> str:
    """An error as it is stored: our own by their message, others with their type in front."""
    text = str(error).strip()
    if isinstance(error, Fatal | RetryAfter | WorkflowCanceled | StaleRound) and text:
        return text[:ERROR_LIMIT]
    return f"{type(error).__name__}: {text}"[:ERROR_LIMIT] if text else type(error).__name__
