"""`transcribe`: see that the session's shared transcript is being made, and wait until it is complete."""

import msgspec

from activities.payloads import Transcript
from activities.plans import TRANSCRIPT_SETTLED
from activities.starts import keep_recognising
from activities.summary.preprocess import FINISHING_S, spread
from activities.summary.record import SummaryPorts, current_paid
from kernel import Fatal, Outcome, Sleep, StepContext, WaitForSignal


class Awaited(msgspec.Struct, frozen=True):
    """Checkpoint and output of `transcribe`: which transcript it is."""

    transcript_id: str


async def transcribe(ports: SummaryPorts, ctx: StepContext) -> Outcome:
    """Done when the transcript is complete; a directive while it is not."""
    summary = await current_paid(ports.summaries, ctx)
    await ports.summaries.mark(summary.summary_id, summary.round, "transcribing")
    transcript = await _transcript(ports, summary.session_id, ctx.load_checkpoint(Awaited))
    awaited = Awaited(transcript.transcript_id)
    if transcript.state == "completed":
        return awaited
    if transcript.state == "failed":
        raise Fatal(transcript.error or "The speech could not be recognised.")
    if not await keep_recognising(ports.publisher, transcript):
        return Sleep(FINISHING_S, awaited)
    return WaitForSignal(
        TRANSCRIPT_SETTLED,
        transcript.transcript_id,
        summary.round,
        poll_fallback_s=spread(ports.poll_s),
        checkpoint=awaited,
    )


async def _transcript(ports: SummaryPorts, session_id: str, awaited: Awaited | None) -> Transcript:
    """The transcript waited for; at first the session's, a failed one begun anew. Its failure later is ours."""
    found = await ports.transcripts.get(awaited.transcript_id) if awaited else None
    return found or await ports.transcripts.ensure(session_id)
