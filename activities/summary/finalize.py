"""`finalize` and the two finalizers: the business record agrees with the workflow before the workflow ends."""

from activities.payloads import SummaryInput
from activities.starts import failure_of
from activities.summary.compose import Written, written
from activities.summary.record import SummaryPorts, current
from kernel import Fatal, StaleRound, StepContext, WorkflowContext


async def finalize(ports: SummaryPorts, ctx: StepContext) -> None:
    """Verify that the record holds the very text that `compose` reported; in a replay, of the round that wrote it."""
    summary = await current(ports.summaries, ctx)
    reported = ctx.load_output("compose", Written)
    if written(summary.composed_round, summary.text) != reported:
        raise Fatal("The stored text is not the one that was written; write the summary again.")


async def complete(ports: SummaryPorts, ctx: WorkflowContext) -> None:
    """The summary is finished."""
    wanted = ctx.load_input(SummaryInput)
    await ports.summaries.mark_completed(wanted.summary_id, wanted.fencing_token)


async def fail(ports: SummaryPorts, ctx: WorkflowContext) -> None:
    """The summary failed: its record says why, and what this round held is given back."""
    wanted = ctx.load_input(SummaryInput)
    try:
        reason = failure_of(ctx, "The summary could not be written.")
        await ports.summaries.mark_failed(wanted.summary_id, wanted.fencing_token, reason)
    except StaleRound:
        pass  # it was marked before, or another round is in progress; the hold of this one is still to be returned
    await ports.summaries.return_quota(wanted.summary_id, wanted.fencing_token)
