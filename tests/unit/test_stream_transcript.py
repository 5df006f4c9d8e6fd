"""One task of the speech service for one recording, whoever asks and however often a worker dies."""

from datetime import timedelta
from typing import Any

import pytest

from activities.payloads import (
    AudioWindow,
    SpeechSegment,
    SpeechStatus,
    TranscribeCheckpoint,
    TranscriptInput,
    WindowPoint,
)
from activities.ports import SpeechFault, SpeechRefused
from activities.stream_transcript import (
    SpeechLimits,
    Transcribed,
    TranscriptPorts,
    announce_failure,
    announce_transcript,
    shortfall,
    transcribe,
)
from kernel import Fatal, RetryAfter, Sleep, StaleRound, WaitForSignal, Yield
from tests.unit.story import START, Publisher, Sessions, Stage, Transcripts

HEARD = [SpeechSegment(0.0, 2.0, "Good evening.")]


def status(state: Any, **fields: Any) -> SpeechStatus:
    return SpeechStatus("task_1", state, **fields)


DONE = status("completed", progress=100.0, language="en", segments=HEARD, decoded_s=60.0)


class Speech:
    """A provider that answers as scripted; the last answer stands."""

    def __init__(self, *answers: SpeechStatus | Exception, name: str = "asr", whole: bool = True) -> None:
        self.name = name
        self.whole = whole
        self._answers = list(answers)
        self.keys: list[str] = []
        self.languages: list[str | None] = []
        self.polled: list[str] = []

    async def submit(self, key: str, audio: bytes, *, language: str | None) -> str:
        self.keys.append(key)
        self.languages.append(language)
        if self._answers and isinstance(self._answers[0], SpeechRefused):
            raise self._answers[0]
        return "task_1"

    async def poll(self, task_id: str) -> SpeechStatus:
        self.polled.append(task_id)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Absent(Speech):
    """A provider that takes nothing."""

    async def submit(self, key: str, audio: bytes, *, language: str | None) -> str:
        raise SpeechFault("model_missing: the model is not there")


class Recordings:
    async def read(self, media_id: str) -> bytes:
        return b"OggS"


class Windows:
    """Audio in windows of half a minute, as far as it was recorded."""

    def __init__(self) -> None:
        self.recorded_s = 0.0
        self.asked: list[bool] = []

    async def next(self, session_id: str, point: WindowPoint, *, over: bool) -> AudioWindow | None:
        self.asked.append(over)
        start_s, end_s = point.position_s, min(point.position_s + 30.0, self.recorded_s)
        if end_s <= start_s or (not over and end_s - start_s < 30.0):
            return None
        return AudioWindow(b"OggS", start_s, end_s, WindowPoint(point.sequence + 1, 0, end_s, end_s))


class Work:
    """One `stream_transcript`."""

    def __init__(self, speech: Speech, limits: SpeechLimits | None = None, **session: Any) -> None:
        self.speech = speech
        self.transcripts = Transcripts()
        self.publisher = Publisher()
        self.windows = Windows()
        self.sessions = Sessions(**{"state": "ready", "media_id": "media_1", "duration_s": 60.0, **session})
        providers = {speech.name: speech}
        self.ports = TranscriptPorts(
            self.transcripts,
            self.sessions,
            Recordings(),
            self.windows,
            providers,
            self.publisher,
            limits or SpeechLimits(),
        )
        self.stage = Stage(TranscriptInput("tra_1", 1))

    async def call(self) -> Any:
        return self.stage.take(await transcribe(self.ports, self.stage.context()))


async def test_one_task_is_submitted_and_polled_until_it_is_complete() -> None:
    work = Work(Speech(status("running", progress=40.0), DONE))
    submitted = await work.call()
    assert isinstance(submitted, Sleep)
    patience = timedelta(seconds=1140)
    assert submitted.checkpoint == TranscribeCheckpoint(0, "asr", "task_1", START, START + patience, end_s=60.0)
    assert isinstance(await work.call(), Sleep)
    assert work.transcripts.transcript.progress == 40.0
    assert await work.call() == Transcribed(1, 60.0, 60.0)
    assert work.speech.keys == ["tra_1:1:0"]
    assert work.transcripts.windows[0][0].segments == HEARD


async def test_a_worker_that_died_before_its_checkpoint_submits_under_the_same_key() -> None:
    work = Work(Speech(DONE))
    await work.call()
    work.stage.checkpoint = None
    work.stage.attempt += 1
    await work.call()
    assert work.speech.keys == ["tra_1:1:0", "tra_1:1:0"]


async def test_the_provider_that_the_checkpoint_names_is_asked_whatever_the_settings_say_now() -> None:
    work = Work(Speech(DONE))
    await work.call()
    other = Speech(status("running"), name="other")
    work.ports.speech["other"] = other  # type: ignore[index] # the dict behind the Mapping
    work.transcripts.transcript = Transcripts(provider="other").transcript
    assert await work.call() == Transcribed(1, 60.0, 60.0)
    assert other.polled == []


async def test_a_provider_that_is_not_set_up_here_is_tried_again_later() -> None:
    work = Work(Speech(DONE, name="elsewhere"))
    with pytest.raises(RetryAfter, match="'asr' is not set up"):
        await work.call()


async def test_a_poll_that_meets_a_fault_counts_it_and_keeps_its_task() -> None:
    work = Work(Speech(SpeechFault("no answer"), SpeechFault("no answer"), status("running"), DONE))
    await work.call()
    await work.call()
    again = await work.call()
    assert isinstance(again.checkpoint, TranscribeCheckpoint)
    assert (again.checkpoint.task_id, again.checkpoint.poll_faults) == ("task_1", 2)
    recovered = await work.call()
    assert recovered.checkpoint.poll_faults == 0


async def test_a_service_that_is_away_for_too_long_fails_with_that_reason() -> None:
    work = Work(Speech(SpeechFault("no answer")), SpeechLimits(poll_faults=3))
    for _ in range(4):
        await work.call()
    with pytest.raises(Fatal, match="4 times in a row: no answer"):
        await work.call()


async def test_the_deadline_comes_before_everything_else() -> None:
    work = Work(Speech(DONE))
    await work.call()
    work.stage.now += timedelta(hours=1)
    with pytest.raises(Fatal, match="did not finish within 19 minutes"):
        await work.call()
    assert work.speech.polled == []


async def test_a_task_id_that_is_too_old_is_not_asked_for() -> None:
    work = Work(Speech(DONE), SpeechLimits(deadline_s=1e6, task_ttl_s=60))
    await work.call()
    work.stage.now += timedelta(minutes=2)
    with pytest.raises(Fatal, match="too old"):
        await work.call()


async def test_a_service_that_is_not_ready_is_tried_again() -> None:
    with pytest.raises(RetryAfter, match="model_missing"):
        await Work(Absent(DONE)).call()


async def test_audio_that_is_refused_fails_without_retry() -> None:
    with pytest.raises(Fatal, match="no audio in it"):
        await Work(Speech(SpeechRefused("no audio in it"))).call()


@pytest.mark.parametrize(("retryable", "expected"), [(True, RetryAfter), (False, Fatal)])
async def test_a_failed_task_is_retried_only_where_the_service_says_so(retryable: bool, expected: type) -> None:
    work = Work(Speech(status("failed", error="out of memory", retryable=retryable)))
    await work.call()
    with pytest.raises(expected, match="out of memory"):
        await work.call()


async def test_a_session_that_could_not_be_recorded_fails_with_its_reason() -> None:
    with pytest.raises(Fatal, match="holds no audio"):
        await Work(Speech(DONE), media_id=None, state="unavailable", error="The recording holds no audio.").call()


# ---- while the stream is live ----

HALF = status("completed", language="en", segments=[SpeechSegment(1.0, 2.0, "Go on.")], decoded_s=30.0)


def live(*answers: SpeechStatus | Exception, **session: Any) -> Work:
    return Work(Speech(*answers), **{"state": "live", "media_id": None, "duration_s": 0.0, **session})


async def test_a_live_stream_is_recognised_window_by_window_and_waited_for_between() -> None:
    work = live(HALF)
    waiting = await work.call()
    assert isinstance(waiting, WaitForSignal)
    assert (waiting.signal_type, waiting.key, waiting.generation) == ("recording_grew", "ses_1", 1)
    work.windows.recorded_s = 40.0
    assert isinstance(await work.call(), Sleep)
    assert isinstance(await work.call(), Yield), "which gives the permit back"
    assert isinstance(await work.call(), WaitForSignal)
    assert work.speech.keys == ["tra_1:1:0:30.000"]


async def test_a_provider_that_answers_in_one_call_is_given_a_recording_in_windows() -> None:
    work = Work(Speech(HALF, whole=False))
    work.windows.recorded_s = 60.0
    for _ in range(4):
        await work.call()
    assert work.speech.keys == ["tra_1:1:0:30.000", "tra_1:1:1:60.000"]


async def test_where_the_segments_were_removed_the_recording_is_all_there_is() -> None:
    work = Work(Speech(DONE, whole=False))
    await work.call()
    assert isinstance(await work.call(), Transcribed)
    assert work.speech.keys == ["tra_1:1:0"]


async def test_where_nothing_could_be_decoded_the_packaging_says_whether_it_is_broken() -> None:
    work = live(status("completed"), state="ended", captured_s=30.0)
    work.windows.recorded_s = 30.0
    assert isinstance(await work.call(), Sleep)
    await work.call()
    assert isinstance(await work.call(), WaitForSignal)
    work.sessions.session = Sessions(state="unavailable", error="The recording holds no audio.").session
    with pytest.raises(Fatal, match="holds no audio"):
        await work.call()


async def test_when_the_recording_ends_only_its_tail_is_left() -> None:
    work = live(HALF)
    work.windows.recorded_s = 30.0
    await work.call()
    await work.call()
    work.windows.recorded_s = 47.5
    work.sessions.session = Sessions(state="ended", captured_s=47.5).session
    await work.call()
    await work.call()
    done = await work.call()
    assert work.speech.keys == ["tra_1:1:0:30.000", "tra_1:1:1:47.500"]
    assert isinstance(done, Transcribed)
    assert done.windows == 2
    assert work.publisher.started == [("stream_watch:ses_1", 1)], "where its packaging failed, it is begun again"
    assert [one.segments[0].start for one, _ in work.transcripts.windows.values()] == [1.0, 31.0]
    assert [expected_s for _, expected_s in work.transcripts.windows.values()] == [30.0, 17.5]


async def test_a_recording_that_becomes_ready_in_the_middle_is_finished_in_its_windows() -> None:
    work = live(HALF)
    work.windows.recorded_s = 60.0
    await work.call()
    work.sessions.session = Sessions(state="ready", media_id="media_1", duration_s=60.0).session
    outcomes = [await work.call() for _ in range(4)]
    assert isinstance(outcomes[-1], Transcribed)
    assert work.speech.keys == ["tra_1:1:0:30.000", "tra_1:1:1:60.000"]


async def test_a_death_between_submission_and_checkpoint_is_no_second_task_for_the_same_audio() -> None:
    work = live(HALF)
    work.windows.recorded_s = 31.0
    await work.call()
    work.stage.checkpoint = None
    await work.call()
    assert set(work.speech.keys) == {"tra_1:1:0:30.000"}


async def test_an_error_between_two_windows_goes_on_behind_the_text_that_is_stored() -> None:
    work = live(HALF)
    work.windows.recorded_s = 90.0
    await work.call()
    await work.call()
    work.stage.checkpoint = None  # as after any error
    work.sessions.session = Sessions(state="ready", media_id="media_1", duration_s=90.0).session
    while not isinstance(await work.call(), Transcribed):
        pass
    assert work.speech.keys == ["tra_1:1:0:30.000", "tra_1:1:1:60.000", "tra_1:1:2:90.000"]
    assert [one.segments[0].start for one, _ in work.transcripts.windows.values()] == [1.0, 31.0, 61.0]


async def test_an_error_after_the_whole_recording_was_stored_submits_nothing_again() -> None:
    work = Work(Speech(DONE))
    await work.call()
    await work.call()
    work.stage.checkpoint = None
    assert await work.call() == Transcribed(1, 60.0, 0.0)
    assert work.speech.keys == ["tra_1:1:0"]


async def test_the_language_of_the_first_speech_holds_for_the_windows_after_it() -> None:
    silent = status("completed", decoded_s=30.0)
    work = live(silent, HALF, HALF)
    work.windows.recorded_s = 90.0
    work.sessions.session = Sessions(state="ended", captured_s=90.0).session
    while not isinstance(await work.call(), Transcribed):
        pass
    assert work.speech.languages == [None, None, "en"]


async def test_progress_is_that_of_the_whole_once_its_length_is_known() -> None:
    work = live(HALF, status("running", progress=50.0))
    work.windows.recorded_s = 60.0
    work.sessions.session = Sessions(state="ended", captured_s=60.0).session
    for _ in range(4):
        await work.call()
    assert work.transcripts.transcript.progress == 75.0


async def test_far_less_decoded_than_recorded_is_noted() -> None:
    work = Work(Speech(status("completed", segments=HEARD, decoded_s=20.0)))
    await work.call()
    await work.call()
    assert work.transcripts.windows[0][0].error == shortfall(20.0, 60.0)
    assert work.transcripts.windows[0][1] == 60.0


def test_a_shortfall_inside_a_recording_says_where_it_is() -> None:
    assert shortfall(20.0, 35.0, 600.0) == (
        "Only 20 of 35 seconds from 00:10:00 on could be decoded; the rest is damaged."
    )


@pytest.mark.parametrize(
    ("decoded_s", "expected_s", "short"),
    [(60, 60, False), (56, 60, False), (54, 60, True), (3500, 3600, False), (3000, 3600, True), (0, 4, False)],
)
def test_a_few_seconds_or_per_cent_are_no_shortfall(decoded_s: float, expected_s: float, short: bool) -> None:
    assert (shortfall(decoded_s, expected_s) is not None) == short


async def test_those_who_wait_are_told_after_the_transcript_was_completed() -> None:
    work = Work(Speech(DONE))
    await announce_transcript(work.ports, work.stage.final())
    assert work.transcripts.transcript.state == "completed"
    assert work.publisher.started == [("stream_fanout:transcript_ready:tra_1:1", 1)]


async def test_those_who_wait_are_told_why_there_is_no_transcript() -> None:
    work = Work(Speech(DONE))
    await announce_failure(work.ports, work.stage.final("transcribe: The speech service refused the audio."))
    assert work.transcripts.transcript.error == "The speech service refused the audio."
    assert work.publisher.started == [("stream_fanout:transcript_failed:tra_1:1", 1)]


async def test_another_round_of_the_transcript_stops_this_one() -> None:
    work = Work(Speech(DONE))
    work.transcripts.transcript = Transcripts(round=2).transcript
    with pytest.raises(StaleRound):
        await work.call()
    await announce_failure(work.ports, work.stage.final())
    assert work.transcripts.transcript.state == "pending"
    assert len(work.publisher.started) == 1
