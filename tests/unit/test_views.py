"""What people are shown, from records and snapshots."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from activities.payloads import Chapter, Gap, SpeechSegment, Usage
from activities.records import SessionRecord, SummaryRecord, TranscriptRecord
from app.reasons import Reason, Situation, Snapshot, length, reason_of, snapshot_of
from app.views import StepView, render_markdown, summary_view, transcript_view
from kernel import StepStatus
from kernel.model import StepState
from tests.unit.story import START

NOW = START + timedelta(minutes=10)
TIMES = {"created_at": START, "updated_at": START}
STEPS = ("preprocess", "transcribe", "compose", "finalize")


def summary(**fields: Any) -> SummaryRecord:
    usual = {"summary_id": "sum_1", "user_id": "li", "session_id": "ses_1", "round": 1, "state": "waiting_for_stream"}
    return SummaryRecord(**{**usual, "style": "brief", "language": "auto", **TIMES, **fields})


def session(**fields: Any) -> SessionRecord:
    usual = {"session_id": "ses_1", "stream_id": "str_1", "url": "https://live.example/a.m3u8", "round": 1, "number": 1}
    return SessionRecord(**{**usual, "state": "scheduled", "title": "Night Talk", **TIMES, **fields})


def transcript(**fields: Any) -> TranscriptRecord:
    usual = {"transcript_id": "tra_1", "session_id": "ses_1", "round": 1, "provider": "asr", "model": "base"}
    return TranscriptRecord(**{**usual, "state": "running", **TIMES, **fields})


def snapshot(name: str, step: StepState | None = None, **fields: Any) -> Snapshot:
    """A workflow that stands at `name`."""
    names = STEPS if name in STEPS else ("capture", "package") if name in ("capture", "package") else (name,)
    done = StepState(status=StepStatus.COMPLETED, attempt=1)
    steps = {other: done if names.index(other) < names.index(name) else StepState() for other in names}
    return Snapshot(status="running", round=1, steps={**steps, name: step or StepState()}, updated_at=NOW, **fields)


def reason(**known: Any) -> Reason | None:
    known.setdefault("summary", summary())
    return reason_of(NOW, Situation(**{"session": session(), **known}))


def code(**known: Any) -> str | None:
    found = reason(**known)
    return found.code if found else None


# ---- reasons ----


@pytest.mark.parametrize(
    ("fields", "expected", "said"),
    [
        ({"state": "scheduled"}, "waiting_for_stream_start", "to begin."),
        ({"state": "scheduled", "trouble": "404"}, "waiting_for_stream_start", "its address answers: 404"),
        ({"state": "live", "captured_s": 34.6}, "stream_live", "34 s recorded so far"),
        ({"state": "live", "captured_s": 75.0, "trouble": "503"}, "stream_interrupted", "(503); 1 min 15 s recorded"),
        ({"state": "ended"}, "packaging", "being put together"),
    ],
)
def test_while_the_stream_is_not_ready_its_session_says_why(fields: Any, expected: str, said: str) -> None:
    found = reason(session=session(**fields))
    assert found is not None
    assert found.code == expected
    assert said in found.text


def test_a_ready_stream_is_no_reason_to_wait() -> None:
    assert reason(session=session(state="ready")) is None


def test_recognition_is_told_in_per_cent() -> None:
    found = reason(summary=summary(state="transcribing"), transcript=transcript(progress=41.7))
    assert found is not None
    assert (found.code, found.text) == ("transcribing", "The speech is being recognised: 42 %.")


def test_a_talk_that_the_model_reads_in_sections_says_how_far_it_has_come() -> None:
    found = reason(summary=summary(state="writing", section=3, sections=8), session=session(state="ready"))
    assert found is not None
    assert (found.code, "3 of 8 sections" in found.text) == ("reading_sections", True)
    assert reason(summary=summary(state="writing", section=8, sections=8), session=session(state="ready")) is None


REFUSED = StepState(traffic_reason="limit", traffic_since=START, due=NOW)
UNREACHABLE = StepState(traffic_reason="unreachable", traffic_since=START, due=NOW)
RETRYING = StepState(failures=2, error="The model is not available now (503).", due=NOW)
TRANSCRIBING: Any = {"summary": summary(state="transcribing"), "transcript": transcript()}


def test_a_refused_permit_is_told_with_since_and_until() -> None:
    expected = Reason("waiting_for_writer_permit", "Waiting for a free place at the writer.", START, NOW)
    assert reason(own=snapshot("compose", REFUSED)) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [(REFUSED, "waiting_for_speech_permit"), (UNREACHABLE, "permit_unreachable"), (RETRYING, "retrying")],
)
def test_what_hinders_the_shared_transcription_hinders_the_summary(step: StepState, expected: str) -> None:
    speech = Snapshot(status="running", round=1, steps={"transcribe": step}, updated_at=NOW)
    assert (
        code(**TRANSCRIBING, own=snapshot("transcribe", StepState(status=StepStatus.WAITING)), speech=speech)
        == expected
    )


def test_a_retry_is_told_with_its_error_and_time() -> None:
    found = reason(own=snapshot("compose", RETRYING))
    assert found is not None
    assert (found.code, found.until) == ("retrying", NOW)
    assert "not available now (503)" in found.text


def test_what_hinders_the_recording_hinders_those_who_wait_for_it() -> None:
    assert code(session=session(state="live"), watch=snapshot("capture", RETRYING)) == "retrying"
    assert code(session=session(state="ended"), watch=snapshot("package", RETRYING)) == "retrying"


def test_a_step_that_no_worker_takes_up_is_told_after_half_a_minute() -> None:
    due = NOW - timedelta(seconds=40)
    assert code(own=snapshot("preprocess", claimable_time=due)) == "no_compatible_worker"
    assert code(own=snapshot("preprocess", claimable_time=NOW)) == "waiting_for_stream_start"
    running = StepState(status=StepStatus.RUNNING, attempt=1)
    assert code(own=snapshot("compose", running, claimable_time=due)) is None


def test_what_an_operator_has_to_look_at_is_told() -> None:
    assert code(own=snapshot("compose", parked_at=START)) == "parked"


@pytest.mark.parametrize("state", ["completed", "failed", "canceled"])
def test_what_has_ended_waits_for_nothing(state: Any) -> None:
    assert reason(summary=summary(state=state), own=snapshot("compose", REFUSED)) is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59.9, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (3725, "1 h 2 min")]
)
def test_lengths_are_told_for_people(seconds: float, words: str) -> None:
    assert length(seconds) == words


# ---- the view ----


def test_the_json_has_exactly_the_fields_of_the_contract() -> None:
    view = summary_view(NOW, Situation(summary=summary(), session=session()), writer="w")
    assert list(msgspec.to_builtins(view)) == [
        "id",
        "url",
        "title",
        "state",
        "step",
        "steps",
        "progress",
        "reason",
        "round",
        "workflow_id",
        "session_id",
        "text",
        "html",
        "chapters",
        "usage",
        "created_at",
        "finished_at",
        "error",
        "style",
        "language",
        "writer",
    ]
    assert list(msgspec.to_builtins(view.reason)) == ["code", "text", "since", "until"]


def test_a_completed_summary_is_shown_with_its_text() -> None:
    done = summary(state="completed", text="# Hi", chapters=[Chapter(0.0, "One")], usage=Usage(1, 2), model="big")
    view = summary_view(NOW, Situation(summary=done, session=session(state="ready")), writer="w")
    assert (view.text, view.html.strip(), view.writer, view.progress, view.step) == (
        "# Hi",
        "<h1>Hi</h1>",
        "big",
        100,
        None,
    )
    assert view.steps == [StepView(name, "completed", 1) for name in STEPS]


def test_a_text_that_is_not_final_is_not_shown() -> None:
    view = summary_view(NOW, Situation(summary=summary(state="writing", text="old"), session=session()), writer="w")
    assert (view.text, view.html, view.chapters, view.writer) == ("", "", [], "w")


def test_steps_follow_from_the_record_where_there_is_no_snapshot() -> None:
    view = summary_view(NOW, Situation(summary=summary(state="transcribing"), session=session()), writer="w")
    assert [step.status for step in view.steps] == ["completed", "running", "pending", "pending"]


def test_an_ended_record_is_believed_before_a_snapshot_whose_worker_died() -> None:
    lagging = snapshot("compose", StepState(status=StepStatus.RUNNING, attempt=2))
    done = Situation(summary=summary(state="completed"), session=session(), own=lagging)
    steps = summary_view(NOW, done, writer="w").steps
    assert [(step.status, step.attempt) for step in steps] == [("completed", n) for n in (1, 1, 2, 1)]
    failed = Situation(summary=summary(state="failed"), session=session(), own=lagging)
    assert [step.status for step in summary_view(NOW, failed, writer="w").steps] == [
        "completed",
        "completed",
        "failed",
        "pending",
    ]


def test_a_record_that_is_ahead_of_its_snapshot_is_believed() -> None:
    lagging = snapshot("preprocess", StepState(status=StepStatus.RUNNING, attempt=1))
    situation = Situation(summary=summary(state="writing"), session=session(), own=lagging)
    assert situation.step == "compose"


def test_a_replay_is_shown_where_it_begins() -> None:
    situation = Situation(summary=summary(round=2), session=session(), own=snapshot("compose"))
    assert situation.step == "compose"
    assert summary_view(NOW, situation, writer="w").progress == 75


def test_a_snapshot_of_an_older_round_is_not_looked_at() -> None:
    document = {"status": "failed", "round": 1, "steps": {"preprocess": {"attempt": 1}}, "revision": 3}
    assert snapshot_of(document, 1) is not None
    assert snapshot_of(document, 2) is None
    assert snapshot_of(None, 1) is None


def test_progress_grows_over_the_whole_story() -> None:
    stages = [
        Situation(summary=summary(), session=session()),
        Situation(summary=summary(), session=session(state="live", captured_s=10)),
        Situation(summary=summary(), session=session(state="live", captured_s=1000)),
        Situation(summary=summary(), session=session(state="live", captured_s=100_000)),
        Situation(summary=summary(), session=session(state="ended")),
        Situation(summary=summary(state="transcribing"), session=session(state="ready")),
        Situation(summary=summary(state="transcribing"), session=session(), transcript=transcript(progress=50)),
        Situation(summary=summary(state="writing"), session=session()),
        Situation(summary=summary(state="completed"), session=session()),
    ]
    shown = [summary_view(NOW, one, writer="w").progress for one in stages]
    assert shown == sorted(set(shown))
    assert (shown[0], shown[-1]) == (0, 100)


def test_a_transcript_is_shown_with_what_is_missing() -> None:
    gaps = [Gap(8.0, 2.0, "not found")]
    known = transcript(language="en", segments=[SpeechSegment(0, 1, "Hi")], decoded_s=9, expected_s=60, error="short")
    view = transcript_view(known, session(gaps=gaps))
    assert (view.gaps, view.decoded_seconds, view.expected_seconds, view.note) == (gaps, 9, 60, "short")


# ---- Markdown ----


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**Hi** *there*", "<p><strong>Hi</strong> <em>there</em></p>"),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("![x](https://evil.example/x.png)", "<p></p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("<b onclick=x>1</b>", "<p>&lt;b onclick=x&gt;1&lt;/b&gt;</p>"),
        ("[a](https://a.example)", '<p><a href="https://a.example" rel="noopener noreferrer nofollow">a</a></p>'),
    ],
)
def test_models_text_is_shown_safely(text: str, html: str) -> None:
    assert render_markdown(text).strip() == html


def test_tables_are_shown() -> None:
    assert "<td>1</td>" in render_markdown("| a |\n|---|\n| 1 |\n")
