"""The four steps of a summary and their ends, on ports in memory."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from activities.payloads import Chapter, Composed, Gap, SpeechSegment, Usage
from activities.ports import QuotaExhausted, TooLong, WriterFault, WriterRefused
from activities.summary.compose import NO_SPEECH, compose, written
from activities.summary.finalize import complete, fail, finalize
from activities.summary.preprocess import Recorded, preprocess
from activities.summary.record import SummaryPorts
from activities.summary.transcribe import Awaited, transcribe
from kernel import Fatal, RetryAfter, Sleep, StaleRound, WaitForSignal, WorkflowCanceled, Yield
from tests.unit.story import SUMMARY_INPUT, Publisher, Sessions, Stage, Summaries, Transcripts, Writer

SPOKEN = [SpeechSegment(0.0, 4.0, "Tonight: why queues lie."), SpeechSegment(65.0, 70.0, "Then: leases.")]
TEXT = "# Queues\n\nThey lie.\n\n## [00:01:05] Leases\n"
WATCH, SHARED = "stream_watch:ses_1", "stream_transcript:tra_1"
STEPS = [preprocess, transcribe, compose, finalize]


class Story:
    """One summary, whose stream and transcript stand as given."""

    def __init__(self, *said: Any, session: Any = None, transcript: Any = None, **summary: Any) -> None:
        self.summaries = Summaries(**summary)
        self.sessions = Sessions(**(session or {"state": "ready", "duration_s": 70.0}))
        self.transcripts = Transcripts(**(transcript or {"state": "completed", "segments": SPOKEN, "language": "en"}))
        self.writer = Writer(*said)
        self.publisher = Publisher()
        self.ports = SummaryPorts(self.summaries, self.sessions, self.transcripts, self.writer, self.publisher)
        self.stage = Stage(SUMMARY_INPUT, outputs={"transcribe": {"transcript_id": "tra_1"}})

    async def call(self, step: Any) -> Any:
        return self.stage.take(await step(self.ports, self.stage.context()))

    @property
    def stored(self) -> Any:
        return self.summaries.summary


# ---- preprocess ----


async def test_a_ready_session_needs_no_waiting() -> None:
    story = Story()
    assert await story.call(preprocess) == Recorded("ses_1", 70.0)
    assert story.summaries.holds == {1}
    assert story.publisher.started == []


async def test_a_recording_that_is_whole_needs_no_packaging_to_be_summarised() -> None:
    ended = Story(session={"state": "ended", "captured_s": 66.0, "media_id": None})
    assert await ended.call(preprocess) == Recorded("ses_1", 66.0)
    assert ended.publisher.started == [("stream_watch:ses_1", 1)], "where its packaging failed, it is begun again"
    nothing = Story(session={"state": "ended", "captured_s": 0.0, "media_id": None})
    assert isinstance(await nothing.call(preprocess), WaitForSignal), "only the packaging knows what went wrong"


async def test_a_live_session_is_watched_and_waited_for() -> None:
    story = Story(session={"state": "live", "round": 4})
    waiting = await story.call(preprocess)
    assert isinstance(waiting, WaitForSignal)
    assert (waiting.signal_type, waiting.key, waiting.generation) == ("stream_settled", "ses_1", 1)
    assert 720 <= (waiting.poll_fallback_s or 0) <= 1080
    assert story.publisher.started == [(WATCH, 4)]


async def test_an_unavailable_session_fails_with_its_reason() -> None:
    with pytest.raises(Fatal, match="holds no audio"):
        await Story(session={"state": "unavailable", "error": "The recording holds no audio."}).call(preprocess)


async def test_quota_that_is_used_up_fails_without_retry() -> None:
    story = Story()
    story.summaries.quota = QuotaExhausted("used up; try again in 3 hours")
    with pytest.raises(Fatal, match="try again in 3 hours"):
        await story.call(preprocess)


@pytest.mark.parametrize(
    ("step", "key", "state"),
    [(preprocess, WATCH, {"session": {"state": "live", "round": 2}}), (transcribe, SHARED, {})],
)
async def test_an_older_round_that_is_still_ending_is_asked_for_again_soon(step: Any, key: str, state: Any) -> None:
    story = Story(**state, transcript={"state": "pending", "round": 2})
    story.publisher.finds[key] = SimpleNamespace(status="failing", round=1)
    outcome = await story.call(step)
    assert isinstance(outcome, Sleep)
    assert outcome.delay_s == 2.0


@pytest.mark.parametrize("found", [("canceled", 2), ("completed", 1)])
async def test_a_shared_workflow_that_can_never_serve_this_round_fails(found: tuple[str, int]) -> None:
    story = Story(session={"state": "live", "round": 2})
    story.publisher.finds[WATCH] = SimpleNamespace(status=found[0], round=found[1])
    with pytest.raises(Fatal, match="stream_watch:ses_1"):
        await story.call(preprocess)


# ---- transcribe ----


async def test_a_complete_transcript_needs_no_waiting() -> None:
    story = Story()
    assert await story.call(transcribe) == Awaited("tra_1")
    assert story.stored.state == "transcribing"


async def test_a_transcript_is_set_going_and_waited_for() -> None:
    story = Story(transcript={"state": "pending"})
    waiting = await story.call(transcribe)
    assert (waiting.signal_type, waiting.key, waiting.checkpoint) == ("transcript_settled", "tra_1", Awaited("tra_1"))
    assert story.publisher.started == [(SHARED, 1)]


async def test_a_transcript_that_failed_before_is_begun_anew() -> None:
    story = Story(transcript={"state": "failed", "error": "out of memory"})
    assert isinstance(await story.call(transcribe), WaitForSignal)
    assert story.publisher.started == [(SHARED, 2)]


async def test_a_transcript_that_fails_while_it_is_waited_for_fails_the_summary() -> None:
    story = Story(transcript={"state": "pending"})
    await story.call(transcribe)
    await story.transcripts.mark_failed("tra_1", 1, "The speech service refused the audio.")
    with pytest.raises(Fatal, match="refused the audio"):
        await story.call(transcribe)
    assert story.transcripts.ensured == 1


# ---- compose ----


async def test_the_text_is_streamed_and_stored_exactly_as_written() -> None:
    pieces = ["\n# Que", "ues\n\nThey lie.\n\n", "## [00:01:05] Leases\n"]
    story = Story(*pieces, Usage(900, 60), session={"state": "ready", "gaps": [Gap(8.0, 2.0, "not found")]})
    output = await story.call(compose)
    assert story.stored.text == story.stage.sinks[0].text == "".join(pieces)
    assert story.stage.sinks[0].flushed
    assert (story.stored.state, story.stored.composed_round, story.stored.model) == ("writing", 1, "scripted")
    assert story.stored.chapters == [Chapter(65.0, "Leases")]
    assert output == written(1, "".join(pieces))
    (request,) = story.writer.requests
    assert (request.title, request.style, request.language) == ("Talk", "brief", "en")
    assert request.segments == SPOKEN
    assert len(request.gaps) == 1


async def test_a_text_that_this_round_has_stored_is_not_written_again() -> None:
    story = Story(text=TEXT, composed_round=1)
    assert await story.call(compose) == written(1, TEXT)
    assert story.writer.requests == []
    assert story.stage.sinks == []


async def test_the_text_of_an_older_round_is_written_anew() -> None:
    story = Story("New words.", text=TEXT, composed_round=1, round=2)
    story.stage.input = msgspec.structs.replace(SUMMARY_INPUT, fencing_token=2)
    await story.call(compose)
    assert (story.stored.text, story.stored.composed_round) == ("New words.", 2)


async def test_a_worker_thought_dead_that_stored_first_is_agreed_with() -> None:
    story = Story("Mine.")

    async def overtaken(request: Any) -> Any:
        yield "Mine."
        await Summaries.store_composed(story.summaries, "sum_1", 1, Composed("Theirs.", [], Usage(), "other"))

    story.writer.write = overtaken  # type: ignore[method-assign] # another worker finishes in the middle
    assert await story.call(compose) == written(1, "Theirs.")
    assert story.stored.text == "Theirs."


@pytest.mark.parametrize(
    ("language", "heard", "text"),
    [
        ("auto", "en", NO_SPEECH["en"]),
        ("auto", None, NO_SPEECH["en"]),
        ("zh", "en", NO_SPEECH["zh"]),
        ("auto", "zh", NO_SPEECH["zh"]),
    ],
)
async def test_where_nobody_spoke_the_writer_is_not_called(language: Any, heard: str | None, text: str) -> None:
    silent = {"state": "completed", "segments": [SpeechSegment(0.0, 5.0, "  ")], "language": heard}
    story = Story("invented", transcript=silent, language=language)
    await story.call(compose)
    assert story.stored.text == story.stage.sinks[0].text == text
    assert story.writer.requests == []


@pytest.mark.parametrize(
    ("error", "expected", "seconds"),
    [
        (WriterFault("busy", 30.0), RetryAfter, 30.0),
        (WriterFault("busy", 0.0), RetryAfter, 0.5),
        (WriterFault("busy", 86400.0), RetryAfter, 600.0),
        (WriterFault("cut off"), RetryAfter, None),
        (WriterRefused("a wrong key"), Fatal, None),
    ],
)
async def test_a_writers_fault_is_retried_when_it_says_and_a_refusal_never(
    error: Exception, expected: type, seconds: float | None
) -> None:
    story = Story("Half a ", error)
    with pytest.raises(expected, match=str(error)) as caught:
        await story.call(compose)
    assert getattr(caught.value, "seconds", None) == seconds
    assert story.stored.text == ""


async def test_an_empty_answer_is_an_error_with_a_name() -> None:
    story = Story(" \n", Usage(5, 0))
    with pytest.raises(RetryAfter, match="scripted gave an empty answer"):
        await story.call(compose)
    assert story.stored.composed_round == 0


async def test_times_that_the_model_invents_do_not_stay_in_the_text() -> None:
    story = Story("## [00:00:59] Queues\n\nThey lie.\n\n", "## [07:0", "0:00] Later\n")
    await story.call(compose)
    assert story.stored.text == story.stage.sinks[0].text == "## [00:00:00] Queues\n\nThey lie.\n\n## Later\n"
    assert story.stored.chapters == [Chapter(0.0, "Queues")]


async def test_a_talk_that_is_too_long_is_read_section_by_section_one_a_call() -> None:
    story = Story("- [00:00:00] Lie.", Usage(10, 2, 0.5))
    story.writer.parts = lambda request: 2 if len(request.segments) > 1 and not request.condensed else 1  # type: ignore[method-assign] # as if it read one line
    assert isinstance(await story.call(compose), Yield)
    assert story.stage.sinks == []
    assert isinstance(await story.call(compose), Yield)
    await story.call(compose)
    assert [request.kind for request in story.writer.requests] == ["notes", "notes", "summary"]
    assert story.writer.requests[-1].segments == [SpeechSegment(0.0, 4.0, "Lie."), SpeechSegment(65.0, 70.0, "Lie.")]
    assert story.stored.text == "- [00:00:00] Lie."
    assert story.stored.usage == Usage(30, 6, 1.5)


async def test_what_the_model_cannot_read_at_once_is_read_in_halves_from_then_on() -> None:
    story = Story(TooLong("maximum context length is 20 tokens"))
    assert isinstance(await story.call(compose), Yield)
    story.writer.say("- Lie.")
    for _ in range(3):
        await story.call(compose)
    assert [request.kind for request in story.writer.requests] == ["summary", "notes", "notes", "summary"]


async def test_a_model_that_cannot_read_a_single_line_fails_the_summary_with_that_reason() -> None:
    story = Story(TooLong("maximum context length is 2 tokens"))
    assert isinstance(await story.call(compose), Yield)
    assert isinstance(await story.call(compose), Yield)
    with pytest.raises(Fatal, match="scripted can read too little at once"):
        await story.call(compose)


async def test_notes_that_are_no_shorter_than_the_talk_are_of_no_use() -> None:
    story = Story("- [00:00:00] " + "And so on, and so on. " * 9)
    story.writer.parts = lambda request: len(request.segments)  # type: ignore[method-assign] # as if it read one line
    with pytest.raises(RetryAfter, match="hardly shorter"):
        await story.call(compose)
    assert story.summaries.sections == {}


# ---- finalize and the ends ----


async def test_the_record_is_verified_against_what_was_written() -> None:
    story = Story(TEXT)
    story.stage.outputs["compose"] = msgspec.to_builtins(await story.call(compose))
    assert await story.call(finalize) is None
    await complete(story.ports, story.stage.final())
    assert story.stored.state == "completed"


async def test_a_replay_that_begins_at_finalize_accepts_the_text_of_the_round_that_wrote_it() -> None:
    story = Story(text=TEXT, composed_round=1, round=2)
    story.stage.input = msgspec.structs.replace(SUMMARY_INPUT, fencing_token=2)
    story.stage.outputs["compose"] = msgspec.to_builtins(written(1, TEXT))
    assert await story.call(finalize) is None


async def test_a_record_that_holds_another_text_fails() -> None:
    story = Story(text="changed", composed_round=1)
    story.stage.outputs["compose"] = msgspec.to_builtins(written(1, TEXT))
    with pytest.raises(Fatal, match="not the one that was written"):
        await story.call(finalize)


async def test_a_failure_marks_the_record_and_returns_the_quota() -> None:
    story = Story()
    await story.call(preprocess)
    await fail(story.ports, story.stage.final("compose: The model's server does not accept the key (401)."))
    assert (story.stored.state, story.stored.error) == (
        "failed",
        "The model's server does not accept the key (401).",
    )
    assert story.summaries.holds == set()


async def test_a_failure_of_an_older_round_returns_its_quota_and_leaves_the_newer_round_alone() -> None:
    story = Story(round=2)
    story.summaries.holds = {1, 2}
    await fail(story.ports, story.stage.final("compose: cut off"))
    assert story.stored.state == "waiting_for_stream"
    assert story.summaries.holds == {2}


# ---- every step ----


@pytest.mark.parametrize("step", STEPS)
async def test_a_removed_summary_cancels_its_workflow_at_the_next_step(step: Any) -> None:
    story = Story(TEXT, state="canceled")
    with pytest.raises(WorkflowCanceled):
        await story.call(step)
    assert story.summaries.holds == set()


@pytest.mark.parametrize("step", STEPS)
async def test_another_round_stops_a_late_step(step: Any) -> None:
    story = Story(TEXT, round=2)
    with pytest.raises(StaleRound):
        await story.call(step)
    assert story.summaries.holds == set()


@pytest.mark.parametrize("step", [preprocess, transcribe, compose])
async def test_a_replay_holds_the_quota_again_wherever_it_begins(step: Any) -> None:
    story = Story(TEXT)
    await story.call(step)
    assert story.summaries.holds == {1}
