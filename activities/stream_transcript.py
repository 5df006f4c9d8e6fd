"""`stream_transcript`: recognise the speech of one session once, for everybody who asked for it.

While the stream is live its recording is taken in windows cut at silences, so that only the tail is left at its end; a
recording that is complete already is one window. Each window is one task of the speech service, submitted under a
stable key and polled, by any worker, through the provider that the checkpoint names.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import msgspec

from activities.payloads import (
    Session,
    SpeechSegment,
    SpeechStatus,
    TranscribeCheckpoint,
    Transcript,
    TranscriptInput,
    WindowPoint,
)
from activities.plans import (
    RECORDING_GREW,
    SPEECH_RECOGNITION,
    STREAM_TRANSCRIPT,
    TRANSCRIPT_FAILED,
    TRANSCRIPT_READY,
)
from activities.ports import Recordings, Sessions, Speech, SpeechFault, SpeechRefused, Transcripts, Windows
from activities.starts import failure_of, keep_watching, publish_fanout
from activities.times import stamp
from kernel import (
    Definition,
    Fatal,
    Outcome,
    Publisher,
    RetryAfter,
    Sleep,
    StaleRound,
    Step,
    StepContext,
    WaitForSignal,
    WorkflowCanceled,
    WorkflowContext,
    Yield,
)

SUBMIT_AGAIN_S = 5.0


@dataclass(frozen=True, slots=True)
class SpeechLimits:
    """How patient a transcription is. Times in seconds."""

    poll_s: float = 0.5
    poll_part: float = 0.2  # of the time that the task has taken already, where that is longer
    slow_poll_s: float = 3.0
    slowest_poll_s: float = 10.0  # of a service that does not answer
    deadline_s: float = 900.0  # of a window, besides `deadline_factor` times its length
    deadline_factor: float = 4.0
    task_ttl_s: float = 20 * 3600.0  # so long a task's id is trusted
    poll_faults: int = 60  # consecutive ones: with the slowing polls, about nine minutes
    look_s: float = 30.0  # between looks for the next window of a live stream


@dataclass(frozen=True, slots=True)
class TranscriptPorts:
    """What transcribing needs. `speech`: the providers by their names."""

    transcripts: Transcripts
    sessions: Sessions
    recordings: Recordings
    windows: Windows
    speech: Mapping[str, Speech]
    publisher: Publisher
    limits: SpeechLimits = field(default_factory=SpeechLimits)


class Transcribed(msgspec.Struct, frozen=True):
    """Output of `transcribe`."""

    windows: int
    decoded_s: float
    expected_s: float


def definition(ports: TranscriptPorts) -> Definition:
    """`stream_transcript` on these ports."""
    step = Step(
        "transcribe",
        partial(transcribe, ports),
        timeout_s=300,
        max_retry=120,  # a speech service that is away for ten minutes fails nothing
        resource=SPEECH_RECOGNITION,
        hold="task",
    )
    return Definition(
        STREAM_TRANSCRIPT.type,
        (step,),
        success_finalizer=partial(announce_transcript, ports),
        failure_finalizer=partial(announce_failure, ports),
    )


async def transcribe(ports: TranscriptPorts, ctx: StepContext) -> Outcome:
    """Submit the next window, or ask for the task of the present one."""
    transcript = await _current(ports, ctx)
    session = await ports.sessions.get(transcript.session_id)
    if session is None:
        raise WorkflowCanceled(f"The session {transcript.session_id} was removed.")
    if session.state == "unavailable":
        raise Fatal(session.error or "The stream could not be recorded.")
    point, now = ctx.load_checkpoint(TranscribeCheckpoint), ctx.now()
    if point:
        return await _poll(ports, transcript, session, point, now)
    whole = session.media_id and not transcript.window_count and _provider(ports, transcript.provider).whole
    if session.media_id and whole:
        return await _submit_whole(ports, transcript, session, session.media_id, now)
    return await _next_window(ports, transcript, session, now)


# ---- submitting ----


async def _submit_whole(
    ports: TranscriptPorts, transcript: Transcript, session: Session, media_id: str, now: datetime
) -> Sleep:
    audio = await ports.recordings.read(media_id)
    key = f"{transcript.transcript_id}:{transcript.round}:0"
    task = TranscribeCheckpoint(0, transcript.provider, "", now, now, end_s=session.duration_s)
    return await _submit(ports, transcript, task, key, audio)


async def _next_window(ports: TranscriptPorts, transcript: Transcript, session: Session, now: datetime) -> Outcome:
    """Submit what follows the windows that are stored; where it is not enough yet, wait for more or for the end.

    An error clears the checkpoint: how far the text has come is known from the text alone.
    """
    number, over = transcript.window_count, session.state in ("ended", "ready")
    if number and transcript.following is None:
        return await _whole(ports, transcript, session)
    window = await ports.windows.next(session.session_id, transcript.following or WindowPoint(), over=over)
    if window is None and session.media_id and not number:  # its segments were removed
        return await _submit_whole(ports, transcript, session, session.media_id, now)
    if window is None and over:
        return await _whole(ports, transcript, session)
    if window is None:
        return _more(ports, transcript)
    task = TranscribeCheckpoint(
        number,
        transcript.provider,
        "",
        now,
        now,
        start_s=window.start_s,
        end_s=window.end_s,
        following=window.following,
    )
    # where a window ends may differ after a death, since more was recorded: then it is another task
    key = f"{transcript.transcript_id}:{transcript.round}:{number}:{window.end_s:.3f}"
    return await _submit(ports, transcript, task, key, window.audio)


async def _whole(ports: TranscriptPorts, transcript: Transcript, session: Session) -> Outcome:
    """All has been heard; where that was nothing, only the packaging tells a silent recording from a broken one.

    Summaries do not wait for the packaging. Where it failed and the session was revived, this begins it again.
    """
    if session.state == "ended":
        with suppress(Fatal):  # it was canceled; the text is whole all the same
            await keep_watching(ports.publisher, session)
    if transcript.decoded_s <= 0 and session.state != "ready":
        return _more(ports, transcript)
    return Transcribed(transcript.window_count, transcript.decoded_s, transcript.expected_s)


def _more(ports: TranscriptPorts, transcript: Transcript) -> WaitForSignal:
    return WaitForSignal(RECORDING_GREW, transcript.session_id, transcript.round, poll_fallback_s=ports.limits.look_s)


async def _submit(
    ports: TranscriptPorts, transcript: Transcript, task: TranscribeCheckpoint, key: str, audio: bytes
) -> Sleep:
    speech, limits = _provider(ports, task.provider), ports.limits
    try:
        task_id = await speech.submit(key, audio, language=transcript.language)
    except SpeechRefused as refusal:
        raise Fatal(str(refusal)) from refusal
    except SpeechFault as fault:
        wait_s = SUBMIT_AGAIN_S if fault.retry_after_s is None else max(fault.retry_after_s, 1.0)
        raise RetryAfter(wait_s, f"The speech service did not take the recording: {fault}") from fault
    await ports.transcripts.store_progress(transcript.transcript_id, transcript.round, transcript.progress)
    patience = timedelta(seconds=limits.deadline_s + limits.deadline_factor * (task.end_s - task.start_s))
    deadline = task.submitted_at + patience
    return Sleep(limits.poll_s, msgspec.structs.replace(task, task_id=task_id, deadline=deadline))


def _provider(ports: TranscriptPorts, name: str) -> Speech:
    try:
        return ports.speech[name]
    except KeyError:
        raise RetryAfter(30, f"The speech service {name!r} is not set up on this worker.") from None


# ---- polling ----


async def _poll(
    ports: TranscriptPorts, transcript: Transcript, session: Session, point: TranscribeCheckpoint, now: datetime
) -> Outcome:
    """Deadline first, then the id's lifetime, then the tolerance for faults."""
    if now >= point.deadline:
        raise Fatal(f"The speech service did not finish within {_minutes(point.deadline - point.submitted_at)}.")
    if (now - point.submitted_at).total_seconds() >= ports.limits.task_ttl_s:
        raise Fatal("The speech service's task is too old to be trusted.")
    try:
        status = await _provider(ports, point.provider).poll(point.task_id)
    except SpeechRefused as refusal:  # the id is not known there any more; the key makes it known again
        raise RetryAfter(2, f"The speech service lost its task: {refusal}") from refusal
    except SpeechFault as fault:
        return _after_fault(ports.limits, point, fault)
    if status.state in ("failed", "completed"):
        return await _settle(ports, transcript, point, status)
    progress = _progress(session, point, status)
    if progress > transcript.progress:
        await ports.transcripts.store_progress(transcript.transcript_id, transcript.round, progress)
    return Sleep(_pause_s(ports.limits, point, now), msgspec.structs.replace(point, poll_faults=0))


def _after_fault(limits: SpeechLimits, point: TranscribeCheckpoint, fault: SpeechFault) -> Sleep:
    faults = point.poll_faults + 1
    if faults > limits.poll_faults:
        raise Fatal(f"The speech service could not be asked {faults} times in a row: {fault}") from fault
    delay_s = min(limits.poll_s * 1.5**faults, limits.slowest_poll_s)
    return Sleep(delay_s, msgspec.structs.replace(point, poll_faults=faults))


def _pause_s(limits: SpeechLimits, point: TranscribeCheckpoint, now: datetime) -> float:
    """A task that has taken long will not be missed for a moment longer."""
    so_far_s = (now - point.submitted_at).total_seconds()
    return min(max(limits.poll_s, limits.poll_part * so_far_s), limits.slow_poll_s)


def _progress(session: Session, point: TranscribeCheckpoint, status: SpeechStatus) -> float:
    """Per cent of the whole; nobody knows how long a stream is that is still live."""
    whole_s = session.duration_s or session.captured_s + sum(gap.duration_s for gap in session.gaps)
    if session.state == "live" or whole_s <= 0:
        return 0.0
    return min((point.start_s + (point.end_s - point.start_s) * status.progress / 100) / whole_s * 100, 99.0)


async def _settle(
    ports: TranscriptPorts, transcript: Transcript, point: TranscribeCheckpoint, status: SpeechStatus
) -> Outcome:
    """Keep the text of a window at its place in the recording; then the next one, if it was not the whole."""
    if status.state == "failed":
        said = f"Speech recognition failed: {status.error or 'the service gave no reason'}"
        raise RetryAfter(5, said) if status.retryable else Fatal(said)
    expected_s = point.end_s - point.start_s
    noted = msgspec.structs.replace(
        status,
        segments=[_moved(segment, point.start_s) for segment in status.segments],
        error=shortfall(status.decoded_s, expected_s, point.start_s),
    )
    await ports.transcripts.store_window(
        transcript.transcript_id, transcript.round, point.window, noted, expected_s, point.following
    )
    if point.following is None and status.decoded_s > 0:
        return Transcribed(point.window + 1, status.decoded_s, expected_s)
    return Yield()


def _moved(segment: SpeechSegment, by_s: float) -> SpeechSegment:
    return SpeechSegment(round(segment.start + by_s, 3), round(segment.end + by_s, 3), segment.text)


def shortfall(decoded_s: float, expected_s: float, start_s: float = 0.0) -> str | None:
    """What to say where much less was decoded than recorded; a few seconds or per cent are nobody's loss."""
    if decoded_s >= expected_s - max(5.0, expected_s * 0.05):
        return None
    of_what = f"Only {decoded_s:.0f} of {expected_s:.0f} seconds"
    where = f" from {stamp(start_s)} on" if start_s else ""
    return f"{of_what}{where} could be decoded; the rest is damaged."


def _minutes(patience: timedelta) -> str:
    return f"{patience.total_seconds() / 60:.0f} minutes"


# ---- the end ----


async def announce_transcript(ports: TranscriptPorts, ctx: WorkflowContext) -> None:
    """The transcript is there: store it, then tell those who wait."""
    wanted = ctx.load_input(TranscriptInput)
    await ports.transcripts.mark_completed(wanted.transcript_id, wanted.fencing_token)
    await publish_fanout(ports.publisher, TRANSCRIPT_READY, wanted.transcript_id, wanted.fencing_token)


async def announce_failure(ports: TranscriptPorts, ctx: WorkflowContext) -> None:
    """There is no transcript: store why, then tell those who wait."""
    wanted = ctx.load_input(TranscriptInput)
    reason = failure_of(ctx, "The speech could not be recognised.")
    with suppress(StaleRound):  # the next round has begun already; those who waited for this one must still be told
        await ports.transcripts.mark_failed(wanted.transcript_id, wanted.fencing_token, reason)
    await publish_fanout(ports.publisher, TRANSCRIPT_FAILED, wanted.transcript_id, wanted.fencing_token)


async def _current(ports: TranscriptPorts, ctx: StepContext) -> Transcript:
    """The transcript, if it still serves the round of this workflow."""
    wanted = ctx.load_input(TranscriptInput)
    transcript = await ports.transcripts.get(wanted.transcript_id)
    if transcript is None:
        raise WorkflowCanceled(f"The transcript {wanted.transcript_id} was removed.")
    if transcript.round != wanted.fencing_token:
        raise StaleRound(f"The transcript is in round {transcript.round}, not {wanted.fencing_token}.")
    return transcript
