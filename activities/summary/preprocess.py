"""`preprocess`: hold the quota, see that the session is being recorded, and wait until all of it is recorded."""

from random import uniform

import msgspec

from activities.plans import STREAM_SETTLED
from activities.starts import keep_watching
from activities.summary.record import SummaryPorts, current_paid
from kernel import Fatal, Outcome, Sleep, StepContext, WaitForSignal

FINISHING_S = 2.0
"""How soon to ask again while an older round of a shared workflow is being brought to its end."""


class Recorded(msgspec.Struct, frozen=True):
    """Output of `preprocess`."""

    session_id: str
    duration_s: float


async def preprocess(ports: SummaryPorts, ctx: StepContext) -> Outcome:
    """Done when the recording is whole, packaged or not; a directive while it is not."""
    summary = await current_paid(ports.summaries, ctx)
    session = await ports.sessions.get(summary.session_id)
    if session is None:
        raise Fatal("The stream's session was removed; subscribe again.")
    if session.state == "ready":
        return Recorded(session.session_id, session.duration_s)
    if session.state == "unavailable":
        raise Fatal(session.error or "The stream could not be recorded.")
    if not await keep_watching(ports.publisher, session):
        return Sleep(FINISHING_S)
    if session.state == "ended" and session.captured_s > 0:  # it is still being packaged, or again after a failure
        return Recorded(session.session_id, session.captured_s)
    return WaitForSignal(STREAM_SETTLED, session.session_id, summary.round, poll_fallback_s=spread(ports.poll_s))


def spread(seconds: float) -> float:
    """`seconds`, give or take a fifth: those who wait for the same thing do not all ask at once."""
    return seconds * uniform(0.8, 1.2)
