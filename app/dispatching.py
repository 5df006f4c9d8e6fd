"""The dispatcher of summaries: from the embedded intent to a registered workflow, and what to do where none can be."""

from activities.payloads import SummaryInput
from activities.plans import RECOVERY_PRIORITY, USER_PRIORITY, summary_key
from activities.ports import Summaries
from kernel import KernelError, Publisher, StaleRound
from kernel.candidates import Candidates
from kernel.dispatch import Dispatcher
from kernel.intents import Intents
from kernel.mutex import Mutex

NOT_RESUMABLE = "not_resumable: an earlier round ended in a way that cannot be resumed; subscribe again"


def summary_dispatcher(
    intents: Intents, publisher: Publisher, candidates: Candidates, mutex: Mutex, summaries: Summaries
) -> Dispatcher:
    """The dispatcher over the collection of summaries."""

    async def rebuild(summary_id: str, round: int) -> SummaryInput:
        """The input of a legacy intent, from what the record says."""
        found = await summaries.get(summary_id)
        if found is None:
            raise KernelError(f"the summary {summary_id} is gone")
        return SummaryInput(summary_id, found.user_id, found.session_id, found.style, found.language, round)

    async def rejected(summary_id: str, round: int, reason: str) -> None:
        """The record fails by name, unless another round has begun."""
        try:
            await summaries.mark_failed(summary_id, round, NOT_RESUMABLE if reason == "not_resumable" else reason)
        except StaleRound:
            return
        await summaries.return_quota(summary_id, round)

    return Dispatcher(
        intents,
        publisher,
        candidates,
        mutex,
        biz_key=summary_key,
        input_type=SummaryInput,
        rebuild=rebuild,
        rejected=rejected,
        priority=USER_PRIORITY,
        recovery_priority=RECOVERY_PRIORITY,
    )
