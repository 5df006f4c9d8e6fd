"""What each step of `summary` does first: read the business record, see that the work is still wanted, hold the quota.

A step that runs again finds what it stored before; a record that was removed or serves another round stops the step.
"""

from dataclasses import dataclass

from activities.payloads import Summary, SummaryInput
from activities.ports import QuotaExhausted, Sessions, Summaries, Transcripts, Writer
from kernel import Fatal, Publisher, StaleRound, StepContext, WorkflowCanceled


@dataclass(frozen=True, slots=True)
class SummaryPorts:
    """What writing a summary needs."""

    summaries: Summaries
    sessions: Sessions
    transcripts: Transcripts
    writer: Writer
    publisher: Publisher
    poll_s: float = 900.0  # between checks of what is waited for, besides its signal


async def current(summaries: Summaries, ctx: StepContext) -> Summary:
    """The record, if it was not removed and still serves the round of this workflow."""
    wanted = ctx.load_input(SummaryInput)
    summary = await summaries.get(wanted.summary_id)
    if summary is None or summary.state == "canceled":
        raise WorkflowCanceled("The summary was removed.")
    if summary.round != wanted.fencing_token:
        raise StaleRound(f"The summary is in round {summary.round}, not {wanted.fencing_token}.")
    return summary


async def current_paid(summaries: Summaries, ctx: StepContext) -> Summary:
    """As `current`, with the quota of the round held.

    Every step that spends asks: the round before gave its hold back when it failed, and a replay may begin at any step.
    """
    summary = await current(summaries, ctx)
    try:
        await summaries.hold_quota(summary.summary_id, summary.round)
    except QuotaExhausted as error:
        raise Fatal(str(error)) from error
    return summary
