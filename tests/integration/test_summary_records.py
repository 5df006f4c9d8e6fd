"""Summaries on a real MongoDB: one per subscription, every write under its round, removals that can be undone."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from activities.adapters.quota import QuotaRecords
from activities.adapters.removals import Removals
from activities.adapters.request_keys import RequestKeys
from activities.adapters.summaries import SummaryRecords
from activities.adapters.transcripts import TranscriptRecords
from activities.payloads import Chapter, Composed, Notes, SpeechSegment, Usage
from activities.records import KeyReused, SummaryRecord
from kernel import Clock, StaleRound

COMPOSED = Composed("# Words", [Chapter(0.0, "One")], Usage(9, 3), "scripted")


@pytest.fixture
async def summaries(db: Any, clock: Clock) -> SummaryRecords:
    records = SummaryRecords(db, clock, QuotaRecords(db, clock, per_day=100))
    await records.ensure_indexes()
    return records


@pytest.fixture
def removals(db: Any, clock: Clock) -> Removals:
    return Removals(db, clock)


async def made(summaries: SummaryRecords, user_id: str = "li", session_id: str = "ses_1") -> SummaryRecord:
    summary, _ = await summaries.create(user_id, session_id, "brief", "auto")
    return summary


async def again(summaries: SummaryRecords, summary: SummaryRecord) -> SummaryRecord:
    found = await summaries.get(summary.summary_id)
    assert found is not None
    return found


# ---- creation ----


async def test_the_same_subscription_made_many_times_at_once_is_one(summaries: SummaryRecords, db: Any) -> None:
    outcomes = await asyncio.gather(*(summaries.create("li", "ses_1", "brief", "auto") for _ in range(20)))
    assert sum(created for _, created in outcomes) == 1
    assert len({summary.summary_id for summary, _ in outcomes}) == 1
    assert await db["summaries"].count_documents({}) == 1


async def test_person_session_style_language_and_incarnation_each_make_another_one(summaries: SummaryRecords) -> None:
    variants: list[tuple[Any, ...]] = [
        ("li", "ses_1", "brief", "auto"),
        ("wang", "ses_1", "brief", "auto"),
        ("li", "ses_2", "brief", "auto"),
        ("li", "ses_1", "minutes", "auto"),
        ("li", "ses_1", "brief", "zh"),
        ("li", "ses_1", "brief", "auto", 1),
    ]
    assert len({(await summaries.create(*one))[0].summary_id for one in variants}) == len(variants)


async def test_the_intent_is_in_the_same_insert(summaries: SummaryRecords, db: Any) -> None:
    summary = await made(summaries)
    stored = await db["summaries"].find_one({"_id": summary.summary_id})
    intent = stored["workflow_dispatch"]
    assert (intent["type"], intent["status"], intent["fencing_token"]) == ("summary", "pending", 1)
    assert intent["input"] == {
        "summary_id": summary.summary_id,
        "user_id": "li",
        "session_id": "ses_1",
        "style": "brief",
        "language": "auto",
        "fencing_token": 1,
    }


# ---- results ----


async def test_a_summary_moves_forward_to_its_end(summaries: SummaryRecords) -> None:
    summary = await made(summaries)
    place = (summary.summary_id, 1)
    await summaries.mark(*place, "writing")
    await summaries.mark(*place, "transcribing")
    assert (await again(summaries, summary)).state == "writing"
    await summaries.store_composed(*place, COMPOSED)
    await summaries.mark_completed(*place)
    await summaries.mark_completed(*place)
    done = await again(summaries, summary)
    assert (done.state, done.text, done.chapters, done.usage) == (
        "completed",
        "# Words",
        COMPOSED.chapters,
        Usage(9, 3),
    )
    assert done.finished_at


async def test_the_first_text_of_a_round_counts_and_the_next_round_replaces_it(summaries: SummaryRecords) -> None:
    summary = await made(summaries)
    late = Composed("late", [], Usage(), "other")
    await summaries.store_composed(summary.summary_id, 1, COMPOSED)
    await summaries.store_composed(summary.summary_id, 1, late)
    assert (await again(summaries, summary)).text == "# Words"
    await summaries.mark_failed(summary.summary_id, 1, "x")
    await summaries.retry(summary.summary_id, 1)
    await summaries.store_composed(summary.summary_id, 2, late)
    found = await again(summaries, summary)
    assert (found.text, found.chapters, found.usage, found.composed_round) == ("late", [], Usage(), 2)


async def test_writes_of_another_round_or_after_the_end_miss(summaries: SummaryRecords) -> None:
    summary = await made(summaries)
    await summaries.mark_failed(summary.summary_id, 1, "first")
    for round in (1, 2):
        for write in (
            summaries.mark(summary.summary_id, round, "writing"),
            summaries.store_composed(summary.summary_id, round, COMPOSED),
            summaries.mark_completed(summary.summary_id, round),
        ):
            with pytest.raises(StaleRound):
                await write
    await summaries.mark_failed(summary.summary_id, 1, "first")
    assert (await again(summaries, summary)).state == "failed"


# ---- retry ----


async def test_of_many_retries_at_once_one_wins(summaries: SummaryRecords, db: Any) -> None:
    summary = await made(summaries)
    await summaries.mark_failed(summary.summary_id, 1, "cut off")
    tries = [summaries.retry(summary.summary_id, 1) for _ in range(10)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    winners = [one for one in outcomes if isinstance(one, SummaryRecord)]
    assert len(winners) == 1
    assert (winners[0].round, winners[0].state, winners[0].error) == (2, "waiting_for_stream", None)
    intent = (await db["summaries"].find_one({"_id": summary.summary_id}))["workflow_dispatch"]
    assert (intent["status"], intent["fencing_token"], intent["input"]["fencing_token"]) == ("pending", 2, 2)


async def test_only_a_failed_summary_is_retried(summaries: SummaryRecords) -> None:
    summary = await made(summaries)
    with pytest.raises(StaleRound):
        await summaries.retry(summary.summary_id, 1)
    with pytest.raises(StaleRound):
        await summaries.retry("sum_nobody", 1)


# ---- lists ----


async def test_a_persons_summaries_come_newest_first_page_by_page(summaries: SummaryRecords) -> None:
    wanted = [(await made(summaries, session_id=f"ses_{number}")).summary_id for number in range(5)]
    await made(summaries, user_id="wang")
    pages, before = [], None
    while page := await summaries.page("li", 2, before):
        pages.append([one.summary_id for one in page])
        before = page[-1].summary_id
    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(one for page in pages for one in page) == sorted(wanted)
    assert pages[0][0] == wanted[-1]


async def test_what_is_somebody_elses_does_not_exist(summaries: SummaryRecords) -> None:
    summary = await made(summaries)
    assert await summaries.own("wang", summary.summary_id) is None
    assert await summaries.own("li", "sum_nobody") is None
    assert (await summaries.page("li", 10, before=(await made(summaries, "wang")).summary_id))[0] == summary


async def test_a_topic_concerns_those_who_still_wait_for_its_source(
    summaries: SummaryRecords, db: Any, clock: Clock
) -> None:
    transcript = await TranscriptRecords(db, clock, provider="asr", model="base").ensure("ses_1")
    waiting = [await made(summaries, f"user_{number}") for number in range(5)]
    await made(summaries, "user_0", "ses_other")
    await summaries.mark_failed(waiting[0].summary_id, 1, "x")
    await summaries.mark(waiting[1].summary_id, 1, "writing")
    await summaries.mark(waiting[2].summary_id, 1, "transcribing")
    expected = sorted(one.summary_id for one in waiting[3:])
    first = await summaries.waiting("stream_ready", "ses_1", "", 1)
    rest = await summaries.waiting("stream_ready", "ses_1", first[-1].summary_id, 1)
    assert [one.summary_id for one in first + rest] == expected
    told = await summaries.waiting("transcript_ready", transcript.transcript_id, "", 10)
    assert [one.summary_id for one in told] == sorted(one.summary_id for one in waiting[2:])
    assert await summaries.waiting("transcript_ready", "tra_nobody", "", 10) == []


# ---- removal ----


async def test_a_removed_summary_is_hidden_and_can_be_brought_back(
    summaries: SummaryRecords, removals: Removals
) -> None:
    summary = await made(summaries)
    assert not await removals.hide("wang", summary.summary_id)
    assert await removals.hide("li", summary.summary_id)
    assert not await removals.hide("li", summary.summary_id)
    assert await summaries.own("li", summary.summary_id) is None
    assert await summaries.page("li", 10) == []
    assert (await again(summaries, summary)).state == "waiting_for_stream"
    assert await removals.undo("wang", summary.summary_id) is None
    assert await removals.undo("li", summary.summary_id)
    assert await summaries.own("li", summary.summary_id)


async def test_a_removal_is_carried_out_when_it_can_no_longer_be_undone(
    summaries: SummaryRecords, removals: Removals, db: Any, clock: Clock
) -> None:
    summary = await made(summaries)
    await summaries.store_composed(summary.summary_id, 1, COMPOSED)
    await removals.hide("li", summary.summary_id)
    await removals.carry_out(summary.summary_id)
    assert (await again(summaries, summary)).state == "waiting_for_stream"
    assert await removals.due(10) == []
    clock.advance(timedelta(seconds=11))
    assert await removals.due(10) == [summary.summary_id]
    await removals.carry_out(summary.summary_id)
    gone = await again(summaries, summary)
    assert (gone.state, gone.text, gone.chapters) == ("canceled", "", [])
    assert (await db["summaries"].find_one({}))["workflow_dispatch"]["status"] == "canceled"
    assert await removals.undo("li", summary.summary_id) is None
    assert await removals.due(10) == []
    assert [one.summary_id for one in await removals.unsettled(10)] == [summary.summary_id]
    await removals.settle(summary.summary_id)
    assert await removals.unsettled(10) == []


async def test_an_ended_summary_keeps_its_end_when_it_is_removed(
    summaries: SummaryRecords, removals: Removals, clock: Clock
) -> None:
    summary = await made(summaries)
    await summaries.store_composed(summary.summary_id, 1, COMPOSED)
    await summaries.mark_completed(summary.summary_id, 1)
    await removals.hide("li", summary.summary_id)
    clock.advance(timedelta(seconds=11))
    await removals.carry_out(summary.summary_id)
    gone = await again(summaries, summary)
    assert (gone.state, gone.text, gone.error) == ("completed", "", None)


async def test_an_operator_cancels_what_has_not_ended(summaries: SummaryRecords, removals: Removals) -> None:
    summary = await made(summaries)
    assert await removals.cancel(summary.summary_id, "asked for by its owner")
    assert not await removals.cancel(summary.summary_id, "again")
    found = await summaries.own("li", summary.summary_id)
    assert found is not None
    assert (found.state, found.error) == ("canceled", "asked for by its owner")


# ---- idempotency keys ----


async def test_a_key_leads_to_its_summary_for_a_day(db: Any, clock: Clock) -> None:
    keys = RequestKeys(db, clock)
    await keys.ensure_indexes()
    assert await keys.reserve("li", "k1", "https://a", "brief", "auto") is None
    assert await keys.reserve("li", "k1", "https://a", "brief", "auto") is None, "the request died before its end"
    await keys.complete("li", "k1", "sum_1")
    assert await keys.reserve("li", "k1", "https://a", "brief", "auto") == "sum_1"
    assert await keys.reserve("wang", "k1", "https://b", "brief", "auto") is None
    with pytest.raises(KeyReused):
        await keys.reserve("li", "k1", "https://b", "brief", "auto")
    clock.advance(timedelta(hours=25))
    assert await keys.reserve("li", "k1", "https://b", "brief", "auto") is None


async def test_one_key_with_two_bodies_at_once_serves_one_of_them(db: Any, clock: Clock) -> None:
    keys = RequestKeys(db, clock)
    tries = [keys.reserve("li", "k1", f"https://{number}", "brief", "auto") for number in range(10)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(outcome is None for outcome in outcomes) == 1
    assert sum(isinstance(outcome, KeyReused) for outcome in outcomes) == 9


async def test_notes_of_sections_are_kept_for_later_rounds_and_go_with_the_summary(
    summaries: SummaryRecords, removals: Removals, clock: Clock
) -> None:
    summary, _ = await summaries.create("li", "ses_1", "brief", "auto")
    notes = Notes(0.0, 60.0, [SpeechSegment(1.0, 2.0, "Queues lie.")], Usage(10, 2))
    await summaries.store_notes(summary.summary_id, 1, "k1", notes, section=1, sections=2)
    await summaries.mark_failed(summary.summary_id, 1, "busy")
    with pytest.raises(StaleRound):
        await summaries.store_notes(summary.summary_id, 1, "k2", notes, section=2, sections=2)
    again = await summaries.retry(summary.summary_id, 1)
    assert (again.section, again.sections) == (1, 2)
    assert await summaries.notes(summary.summary_id) == {"k1": notes}
    await removals.hide("li", summary.summary_id)
    clock.advance(timedelta(seconds=11))
    await removals.carry_out(summary.summary_id)
    assert await summaries.notes(summary.summary_id) == {}
