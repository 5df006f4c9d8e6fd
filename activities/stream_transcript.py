"""`stream_transcript`: recognise the speech of one session once, for everybody who asked for it.

A window of the recording is one task of the speech service, submitted under a stable key and polled, by any worker,
through the provider that the checkpoint names. In this plain form the whole recording is one window.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import msgspec

from activities.payloads import Session, SpeechStatus, TranscribeCheckpoint, Transcript, TranscriptInput
from activities.plans import SPEECH_RECOGNITION, STREAM_TRANSCRIPT, TRANSCRIPT_FAILED, TRANSCRIPT_READY
from activities.ports import Recordings, Sessions, Speech, SpeechFault, SpeechRefused, Transcripts
from activities.starts import failure_of, publish_fanout
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
    WorkflowCanceled,
    WorkflowContext,
)

WINDOW = 0  # the whole recording


@dataclass(frozen=True, slots=True)
class SpeechLimits:
    """How patient a transcription is. Times in seconds."""

    poll_s: float = 1.5
    slowest_poll_s: float = 10.0
    deadline_s: float = 900.0  # of a window, besides `deadline_factor` times its length
    deadline_factor: float = 4.0
    task_ttl_s: float = 20 * 3600.0  # so long a task's id is trusted
    poll_faults: int = 60  # consecutive ones: with the slowing polls, about nine minutes


@dataclass(frozen=True, slots=True)
class TranscriptPorts:
    """What transcribing needs. `speech`: the providers by their names."""

    transcripts: Transcripts
    sessions: Sessions
    recordings: Recordings
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
    """Submit the window, or ask for its task."""
    transcript = await _current(ports, ctx)
    session = await ports.sessions.get(transcript.session_id)
    if session is None:
        raise WorkflowCanceled(f"The session {transcript.session_id} was removed.")
    point = ctx.load_checkpoint(TranscribeCheckpoint)
    if point is None:
        return await _submit(ports, transcript, session, ctx.now())
    return await _poll(ports, transcript, session, point, ctx.now())


# ---- submitting ----


async def _submit(ports: TranscriptPorts, transcript: Transcript, session: Session, now: datetime) -> Sleep:
    if session.media_id is None:
        raise Fatal(f"The session has no recording; it is {session.state}.")
    speech = _provider(ports, transcript.provider)
    audio = await ports.recordings.read(session.media_id)
    key = f"{transcript.transcript_id}:{transcript.round}:{WINDOW}"
    try:
        task_id = await speech.submit(key, audio, language=None)
    except SpeechRefused as refusal:
        raise Fatal(str(refusal)) from refusal
    except SpeechFault as fault:
        raise RetryAfter(5, f"The speech service did not take the recording: {fault}") from fault
    await ports.transcripts.store_progress(transcript.transcript_id, transcript.round, 0.0)
    limits = ports.limits
    patience = timedelta(seconds=limits.deadline_s + limits.deadline_factor * session.duration_s)
    return Sleep(limits.poll_s, TranscribeCheckpoint(WINDOW, speech.name, task_id, now, now + patience))


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
    return await _act_on(ports, transcript, session, point, status)


def _after_fault(limits: SpeechLimits, point: TranscribeCheckpoint, fault: SpeechFault) -> Sleep:
    faults = point.poll_faults + 1
    if faults > limits.poll_faults:
        raise Fatal(f"The speech service could not be asked {faults} times in a row: {fault}") from fault
    delay_s = min(limits.poll_s * 1.2**faults, limits.slowest_poll_s)
    return Sleep(delay_s, msgspec.structs.replace(point, poll_faults=faults))


async def _act_on(
    ports: TranscriptPorts, transcript: Transcript, session: Session, point: TranscribeCheckpoint, status: SpeechStatus
) -> Outcome:
    if status.state == "failed":
        said = f"Speech recognition failed: {status.error or 'the service gave no reason'}"
        raise RetryAfter(5, said) if status.retryable else Fatal(said)
    if status.state == "completed":
        return await _store(ports, transcript, session, point, status)
    if status.progress > transcript.progress:
        await ports.transcripts.store_progress(transcript.transcript_id, transcript.round, status.progress)
    return Sleep(ports.limits.poll_s, msgspec.structs.replace(point, poll_faults=0))


async def _store(
    ports: TranscriptPorts, transcript: Transcript, session: Session, point: TranscribeCheckpoint, status: SpeechStatus
) -> Transcribed:
    expected_s = session.duration_s
    noted = msgspec.structs.replace(status, error=shortfall(status.decoded_s, expected_s))
    await ports.transcripts.store_window(transcript.transcript_id, transcript.round, point.window, noted, expected_s)
    return Transcribed(point.window + 1, status.decoded_s, expected_s)


def shortfall(decoded_s: float, expected_s: float) -> str | None:
    """What to say where much less was decoded than recorded; a few seconds or per cent are nobody's loss."""
    if decoded_s >= expected_s - max(5.0, expected_s * 0.05):
        return None
    return f"Only {decoded_s:.0f} of {expected_s:.0f} seconds could be decoded; the rest of the recording is damaged."


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
