"""Shared transcripts on a real MongoDB."""

import asyncio
from typing import Any

import pytest

from activities.adapters.transcripts import TranscriptRecords
from activities.payloads import SpeechSegment, SpeechStatus, WindowPoint
from kernel import Clock, StaleRound


@pytest.fixture
def transcripts(db: Any, clock: Clock) -> TranscriptRecords:
    return TranscriptRecords(db, clock, provider="asr", model="base")


def heard(*words: str, at: float = 0.0, **fields: Any) -> SpeechStatus:
    segments = [SpeechSegment(at + place, at + place + 1, word) for place, word in enumerate(words)]
    return SpeechStatus("task", "completed", segments=segments, decoded_s=float(len(words)), **fields)


async def test_all_subscribers_share_one_transcript(transcripts: TranscriptRecords, db: Any) -> None:
    made = await asyncio.gather(*(transcripts.ensure("ses_1") for _ in range(20)))
    assert len({one.transcript_id for one in made}) == await db["transcripts"].count_documents({}) == 1
    assert (made[0].state, made[0].round, made[0].provider, made[0].model) == ("pending", 1, "asr", "base")


async def test_another_model_makes_another_transcript(transcripts: TranscriptRecords, db: Any, clock: Clock) -> None:
    other = TranscriptRecords(db, clock, provider="asr", model="large")
    assert (await transcripts.ensure("ses_1")).transcript_id != (await other.ensure("ses_1")).transcript_id


async def test_a_failed_transcript_begins_one_next_round(transcripts: TranscriptRecords) -> None:
    made = await transcripts.ensure("ses_1")
    await transcripts.store_window(made.transcript_id, 1, 0, heard("old"), 1.0, None)
    await transcripts.mark_failed(made.transcript_id, 1, "out of memory")
    again = await asyncio.gather(*(transcripts.ensure("ses_1") for _ in range(10)))
    assert {one.round for one in again} == {2}
    assert (again[0].state, again[0].error, again[0].segments, again[0].finished_at) == ("pending", None, [], None)


async def test_windows_are_joined_in_order_and_a_repeated_one_replaces_itself(transcripts: TranscriptRecords) -> None:
    made = await transcripts.ensure("ses_1")
    for window in (10, 2, 0):
        status = heard(f"w{window}", at=window * 10.0, language="en" if window else None)
        await transcripts.store_window(made.transcript_id, 1, window, status, 10.0, None)
    await transcripts.store_window(made.transcript_id, 1, 2, heard("again", at=20.0, language="en"), 10.0, None)
    found = await transcripts.get(made.transcript_id)
    assert found is not None
    assert [segment.text for segment in found.segments] == ["w0", "again", "w10"]
    assert (found.language, found.decoded_s, found.expected_s, found.state) == ("en", 3.0, 30.0, "running")


async def test_progress_only_grows_and_what_is_short_is_said(transcripts: TranscriptRecords) -> None:
    made = await transcripts.ensure("ses_1")
    for progress in (40.0, 10.0):
        await transcripts.store_progress(made.transcript_id, 1, progress)
    found = await transcripts.get(made.transcript_id)
    assert found is not None
    assert (found.state, found.progress) == ("running", 40.0)
    await transcripts.store_window(made.transcript_id, 1, 0, heard("a", error="Only 1 of 60 seconds"), 60.0, None)
    await transcripts.mark_completed(made.transcript_id, 1)
    await transcripts.mark_completed(made.transcript_id, 1)
    done = await transcripts.get(made.transcript_id)
    assert done is not None
    assert (done.state, done.progress, done.error) == ("completed", 100.0, "Only 1 of 60 seconds")


async def test_writes_of_another_round_or_after_the_end_miss(transcripts: TranscriptRecords) -> None:
    made = await transcripts.ensure("ses_1")
    await transcripts.mark_failed(made.transcript_id, 1, "x")
    await transcripts.mark_failed(made.transcript_id, 1, "x")
    for write in (
        transcripts.store_progress(made.transcript_id, 1, 1.0),
        transcripts.store_window(made.transcript_id, 1, 0, heard("late"), 1.0, None),
        transcripts.mark_completed(made.transcript_id, 1),
        transcripts.mark_failed(made.transcript_id, 2, "x"),
    ):
        with pytest.raises(StaleRound):
            await write


async def test_a_sessions_complete_transcript_is_shown_before_a_newer_one_that_is_not(
    transcripts: TranscriptRecords, db: Any, clock: Clock
) -> None:
    assert await transcripts.of_session("ses_1") is None
    first = await transcripts.ensure("ses_1")
    await transcripts.mark_completed(first.transcript_id, 1)
    await TranscriptRecords(db, clock, provider="asr", model="large").ensure("ses_1")
    found = await transcripts.of_session("ses_1")
    assert found is not None
    assert found.transcript_id == first.transcript_id


async def test_how_far_the_text_has_come_is_known_from_the_windows_that_are_stored(
    transcripts: TranscriptRecords,
) -> None:
    made = await transcripts.ensure("ses_1")
    assert (made.window_count, made.following) == (0, None)
    for window, at in enumerate((31.5, 64.25)):
        point = WindowPoint(10 * window + 9, 480, at, at - 1.0)
        await transcripts.store_window(made.transcript_id, 1, window, heard("text"), 30.0, point)
        found = await transcripts.get(made.transcript_id)
        assert found is not None
        assert (found.window_count, found.following) == (window + 1, point)
