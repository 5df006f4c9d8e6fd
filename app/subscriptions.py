"""The business service behind API, pages and operators: subscribe, look, retry, remove.

A request that was accepted is durable before its workflow is registered; what a request leaves undone, the recovery
does. Everyone sees only their own: what belongs to somebody else does not exist.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from activities.payloads import Language, Style
from activities.plans import SUMMARY, summary_key
from activities.ports import QuotaExhausted, SourceFault, SourceRefused
from activities.records import KeyReused, SessionRecord, SummaryRecord
from activities.uploads import belongs_to, is_upload
from app.situations import Situations
from app.subscription_ports import (
    Dispatching,
    KeyBook,
    QuotaBook,
    RemovalBook,
    SessionBook,
    Snapshots,
    SummaryBook,
    Superseding,
    TranscriptBook,
)
from app.views import SummaryView, TranscriptView, summary_view, transcript_view
from kernel import Clock, KernelError, StaleRound, workflow_id_of

log = logging.getLogger(__name__)
PURGED_AT_ONCE = 50

__all__ = ["BadAddress", "KeyReused", "NotFailed", "NotFound", "QuotaExhausted", "Subscriptions"]


class BadAddress(Exception):
    """This address cannot be subscribed to; the message says why."""


class NotFound(Exception):
    """There is no such summary."""


class NotFailed(Exception):
    """Only a failed summary can be retried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionParts:
    """The stores and services that subscriptions are made of. `titles`: names of known addresses, query or not."""

    sessions: SessionBook
    transcripts: TranscriptBook
    summaries: SummaryBook
    removals: RemovalBook
    quota: QuotaBook
    keys: KeyBook
    dispatcher: Dispatching
    publisher: Superseding
    snapshots: Snapshots
    check_address: Callable[[str], Awaitable[None]]
    uploaded: Callable[[str], Awaitable[bool]]
    begun_again: Callable[[SessionRecord], Awaitable[bool]]
    clock: Clock
    writer: str
    streams_per_person: int = 50
    titles: Mapping[str, str] = field(default_factory=dict)


class Subscriptions:
    """People's subscriptions. Every method but the operators' is asked by, and answers to, one person."""

    def __init__(self, parts: SubscriptionParts) -> None:
        self._parts = parts
        self._situations = Situations(parts.sessions, parts.transcripts, parts.snapshots)

    # ---- subscribing ----

    async def subscribe(
        self,
        user_id: str,
        url: str,
        *,
        style: Style = "brief",
        language: Language = "auto",
        idempotency_key: str | None = None,
    ) -> tuple[SummaryView, bool]:
        """The person's summary of the stream at `url`, and whether it is new.

        Raises BadAddress, KeyReused, QuotaExhausted, or StoreUnavailable: then nothing was accepted.
        """
        url = url.strip()
        await self._check_address(user_id, url)
        body = (url, style, language)
        if idempotency_key and (known := await self._made_with(user_id, idempotency_key, *body)):
            return await self._view(known), False
        summary, created = await self._subscription(user_id, *body)
        if created:
            await self._dispatch(summary)
        if idempotency_key:
            await self._parts.keys.complete(user_id, idempotency_key, summary.summary_id)
        return await self._view(summary), created

    async def _made_with(self, user_id: str, key: str, *body: str) -> SummaryRecord | None:
        """The summary that an earlier request with this key led to. Raises KeyReused."""
        summary_id = await self._parts.keys.reserve(user_id, key, *body)
        return await self._parts.summaries.get(summary_id) if summary_id else None

    async def _check_address(self, user_id: str, url: str) -> None:
        if is_upload(url):
            if not (belongs_to(url, user_id) and await self._parts.uploaded(url)):
                raise BadAddress("This file was not uploaded by you, or it is not stored any more; upload it again.")
            return
        try:
            await self._parts.check_address(url)
        except (SourceRefused, SourceFault) as error:
            raise BadAddress(str(error)) from error

    async def _subscription(
        self, user_id: str, url: str, style: Style, language: Language
    ) -> tuple[SummaryRecord, bool]:
        """The one there is, brought back if it was just removed; or a new one."""
        parts = self._parts
        known = parts.titles.get(url) or parts.titles.get(url.partition("?")[0], "")
        session = await parts.sessions.attach(url, known)
        if await parts.begun_again(session):
            session = await parts.sessions.follow(session)
        latest = await parts.summaries.latest(user_id, session.session_id, style, language)
        if latest and latest.removed_at:
            latest = await parts.removals.undo(user_id, latest.summary_id) or latest
        if latest and latest.removed_at is None and latest.state != "canceled":
            return latest, False
        await parts.quota.check(user_id)
        if session.state not in ("ready", "unavailable"):
            await self._check_room(user_id)
        if session.state == "unavailable":
            session = await parts.sessions.revive(session.session_id, session.round)
        incarnation = latest.incarnation + 1 if latest else 0
        return await parts.summaries.create(user_id, session.session_id, style, language, incarnation)

    async def _check_room(self, user_id: str) -> None:
        """Nobody waits for streams without end. Side by side, a few requests may pass it together."""
        most = self._parts.streams_per_person
        if await self._parts.summaries.count_waiting(user_id) >= most:
            raise QuotaExhausted(f"You wait for {most} streams already. Remove one, or come back when one is over.")

    async def _dispatch(self, summary: SummaryRecord) -> None:
        """Register the workflow now; the intent is stored, so a fault only delays it."""
        try:
            await self._parts.dispatcher.dispatch(summary.summary_id, summary.round)
        except KernelError as error:
            log.warning("the workflow of %s is left to the recovery: %s", summary.summary_id, error)

    # ---- looking ----

    async def find(self, user_id: str, summary_id: str) -> SummaryView | None:
        """One of the person's summaries."""
        summary = await self._parts.summaries.own(user_id, summary_id)
        return await self._view(summary) if summary else None

    async def listing(self, user_id: str, limit: int, before: str | None) -> list[SummaryView]:
        """The person's summaries, newest first; `before` is the id of the last one already seen."""
        page = await self._parts.summaries.page(user_id, limit, before)
        now = self._parts.clock.hint(0)
        return [
            summary_view(now, situation, writer=self._parts.writer)
            for situation in await self._situations.several(page)
        ]

    async def transcript(self, user_id: str, summary_id: str) -> TranscriptView | None:
        """The transcript of one of the person's summaries, once it is complete."""
        summary = await self._parts.summaries.own(user_id, summary_id)
        found = await self._parts.transcripts.of_session(summary.session_id) if summary else None
        if summary is None or found is None or found.state != "completed":
            return None
        return transcript_view(found, await self._parts.sessions.get(summary.session_id))

    async def media(self, user_id: str, summary_id: str) -> str | None:
        """The id of the recording that one of the person's summaries is of, once there is one."""
        summary = await self._parts.summaries.own(user_id, summary_id)
        session = await self._parts.sessions.get(summary.session_id) if summary else None
        return session.media_id if session else None

    async def _view(self, summary: SummaryRecord) -> SummaryView:
        now = self._parts.clock.hint(0)
        return summary_view(now, await self._situations.one(summary), writer=self._parts.writer)

    # ---- retrying ----

    async def retry(self, user_id: str, summary_id: str) -> SummaryView:
        """A new round of a failed summary; what earlier rounds finished is kept.

        Raises NotFound, NotFailed, QuotaExhausted or StoreUnavailable.
        """
        summary = await self._parts.summaries.own(user_id, summary_id)
        if summary is None:
            raise NotFound(f"There is no summary {summary_id}.")
        await self._parts.quota.check(user_id)
        return await self._view(await self._retry(summary))

    async def _retry(self, summary: SummaryRecord, from_step: str | None = None) -> SummaryRecord:
        if summary.state != "failed":
            raise NotFailed(f"This summary is {summary.state}; only a failed one can be tried again.")
        session = await self._parts.sessions.get(summary.session_id)
        if session and session.state == "unavailable":
            await self._parts.sessions.revive(session.session_id, session.round)
        try:
            again = await self._parts.summaries.retry(summary.summary_id, summary.round, from_step)
        except StaleRound as stale:
            raise NotFailed("This summary is being tried again already.") from stale
        await self._dispatch(again)
        return again

    # ---- removing ----

    async def remove(self, user_id: str, summary_id: str) -> bool:
        """Hide a summary; its work goes on until this can no longer be undone. False where there is none."""
        return await self._parts.removals.hide(user_id, summary_id)

    async def undo_remove(self, user_id: str, summary_id: str) -> bool:
        """Bring a summary back; False where it is too late. Raises NotFound where it never was theirs."""
        removals = self._parts.removals
        if await removals.undo(user_id, summary_id) is not None:
            return True
        if not await removals.knows(user_id, summary_id):
            raise NotFound(f"There is no summary {summary_id}.")
        return False

    async def purge(self) -> int:
        """Carry out removals that can no longer be undone, and finish what others left; how many were settled.

        To be called every second or two from any number of processes.
        """
        for summary_id in await self._parts.removals.due(PURGED_AT_ONCE):
            await self._parts.removals.carry_out(summary_id)
        canceled = await self._parts.removals.unsettled(PURGED_AT_ONCE)
        for summary in canceled:
            await self._settle(summary)
        return len(canceled)

    async def _settle(self, summary: SummaryRecord) -> bool:
        """What follows from a canceled record: its workflow ends, its quota is returned. Whether a workflow ended."""
        changed = await self._parts.publisher.supersede(workflow_id_of(summary_key(summary.summary_id)))
        if summary.state != "completed":
            await self._parts.summaries.return_quota(summary.summary_id, summary.round)
        await self._parts.removals.settle(summary.summary_id)
        return changed

    # ---- operators ----

    async def supersede(self, workflow_id: str, reason: str) -> bool:
        """Cancel a summary and its workflow; False where it has ended, or the workflow is not a summary's."""
        summary = await self._of_workflow(workflow_id)
        if summary is None or not await self._parts.removals.cancel(summary.summary_id, reason):
            return False
        return await self._settle(summary)

    async def retry_workflow(self, workflow_id: str, from_step: str | None = None) -> bool:
        """A new round of a failed summary, for its owner; False where it has not failed. Raises UnknownStep."""
        if from_step:
            SUMMARY.from_step(from_step)
        summary = await self._of_workflow(workflow_id)
        if summary is None or summary.state != "failed":
            return False
        await self._retry(summary, from_step)
        return True

    async def _of_workflow(self, workflow_id: str) -> SummaryRecord | None:
        snapshot = await self._parts.snapshots.snapshot(workflow_id)
        if snapshot is None or snapshot["type"] != SUMMARY.type:
            return None
        return await self._parts.summaries.get(snapshot["biz_key"].partition(":")[2])
