"""Why a summary is not further: computed from the business records and what the workflows' snapshots say. Pure.

Snapshots may lag a little behind; the records are the truth, and a snapshot of an older round is not looked at.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from activities.plans import SUMMARY
from activities.records import SessionRecord, SummaryRecord, TranscriptRecord
from kernel.model import StepState, StepStatus

ENDED = frozenset({"completed", "failed", "canceled"})
STEP_OF_STATE = {"waiting_for_stream": "preprocess", "transcribing": "transcribe", "writing": "compose"}
UNCLAIMED = timedelta(seconds=30)
"""A step that is due for so long finds no worker."""


class Reason(msgspec.Struct, frozen=True):
    """What is waited for. `until` is when it ends or is looked at again, where that is known."""

    code: str
    text: str
    since: datetime | None = None
    until: datetime | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a workflow's snapshot that people are shown."""

    status: str
    round: int
    steps: dict[str, StepState]
    claimable_time: datetime | None = None
    parked_at: datetime | None = None
    updated_at: datetime | None = None


def snapshot_of(document: dict[str, Any] | None, round: int) -> Snapshot | None:
    """The snapshot, unless it is missing or speaks of another round."""
    found = msgspec.convert(document, Snapshot) if document else None
    return found if found and found.round == round else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that is known of one summary. The snapshots are of the current rounds, or None."""

    summary: SummaryRecord
    session: SessionRecord | None
    transcript: TranscriptRecord | None = None
    own: Snapshot | None = None
    watch: Snapshot | None = None
    speech: Snapshot | None = None

    @property
    def ended(self) -> bool:
        """Whether the summary is in an end state."""
        return self.summary.state in ENDED

    @property
    def step(self) -> str | None:
        """The step that the summary is at: the record's word or the snapshot's, whichever is further."""
        if self.summary.state == "completed":
            return None
        places = [SUMMARY.steps.index(STEP_OF_STATE.get(self.summary.state, "preprocess"))]
        if self.own:
            done = (StepStatus.COMPLETED, StepStatus.SKIPPED)
            places += [place for place, name in enumerate(SUMMARY.steps) if self.own.steps[name].status not in done][:1]
        return SUMMARY.steps[max(places)]


def reason_of(now: datetime, situation: Situation) -> Reason | None:
    """Why the summary is not further, or None where it is being worked on or has ended."""
    step = situation.step
    if situation.ended or step is None:
        return None
    own = _hindrance(now, situation.own, step, "waiting_for_writer_permit", "the writer")
    if own or situation.session is None:
        return own
    if step == "preprocess":
        return _recording(now, situation, situation.session)
    return _transcribing(now, situation) if step == "transcribe" else _reading(situation.summary)


def _reading(summary: SummaryRecord) -> Reason | None:
    """How far a talk that the model cannot read at once has been read."""
    if summary.section >= summary.sections:
        return None
    text = (
        f"The talk is longer than the model reads at once: {summary.section} of {summary.sections} sections are read."
    )
    return Reason("reading_sections", text, summary.updated_at)


# ---- any workflow ----


def _hindrance(now: datetime, of: Snapshot | None, name: str, permit_code: str, service: str) -> Reason | None:
    """What keeps a step from being executed: an operator's hold, a permit, a retry, no worker."""
    if of is None:
        return None
    if of.parked_at:
        return Reason("parked", "This has stopped making progress; an operator has to look at it.", of.parked_at)
    step = of.steps.get(name)
    if step is None or step.status is not StepStatus.PENDING:
        return None
    if step.traffic_reason:
        return _permit(step, permit_code, service)
    if step.failures and step.error:
        return Reason("retrying", f"It will be tried again: {step.error}", of.updated_at, step.due)
    due = of.claimable_time
    if due and now - due > UNCLAIMED:
        return Reason("no_compatible_worker", "No worker that can do this step has taken it up.", due)
    return None


def _permit(step: StepState, code: str, service: str) -> Reason:
    if step.traffic_reason == "unreachable":
        text = f"A place at {service} cannot be asked for at the moment; this goes on by itself."
        return Reason("permit_unreachable", text, step.traffic_since, step.due)
    return Reason(code, f"Waiting for a free place at {service}.", step.traffic_since, step.due)


# ---- the recording ----


def _recording(now: datetime, situation: Situation, session: SessionRecord) -> Reason | None:
    step = "package" if session.state == "ended" else "capture"
    if found := _hindrance(now, situation.watch, step, "waiting_for_permit", "the recorder"):
        return found
    match session.state:
        case "scheduled":
            return _not_begun(session)
        case "live":
            return _live(session)
        case "ended":
            return Reason("packaging", "The stream has ended; its recording is being put together.", session.ended_at)
        case _:
            return None


def _not_begun(session: SessionRecord) -> Reason:
    text = "Waiting for the stream to begin."
    if session.trouble:
        text = f"Waiting for the stream to begin; its address answers: {session.trouble}"
    return Reason("waiting_for_stream_start", text, session.created_at)


def _live(session: SessionRecord) -> Reason:
    if session.file:
        return Reason("reading_file", "The file is being read.", session.live_at)
    recorded = f"{length(session.captured_s)} recorded so far"
    if session.trouble:
        text = f"The stream is interrupted ({session.trouble.rstrip('.')}); {recorded}."
        return Reason("stream_interrupted", text, session.trouble_at)
    return Reason("stream_live", f"The stream is live; {recorded}.", session.live_at)


def length(seconds: float) -> str:
    """A duration for people: `34 s`, `12 min 3 s`, `1 h 2 min`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


# ---- the transcript ----


def _transcribing(now: datetime, situation: Situation) -> Reason | None:
    transcript = situation.transcript
    if transcript is None or transcript.state in ("completed", "failed"):
        return None
    found = _hindrance(now, situation.speech, "transcribe", "waiting_for_speech_permit", "speech recognition")
    if found:
        return found
    return Reason(
        "transcribing", f"The speech is being recognised: {transcript.progress:.0f} %.", transcript.created_at
    )
