"""What people are shown of a summary and its transcript: the JSON of the API and the context of the pages. Pure."""

from datetime import datetime
from functools import lru_cache
from math import exp

import msgspec
import nh3
from markdown_it import MarkdownIt

from activities.payloads import Chapter, Gap, Language, SpeechSegment, Style, SummaryState, Usage
from activities.plans import SUMMARY, summary_key
from activities.records import SessionRecord, TranscriptRecord
from app.reasons import ENDED, Reason, Situation, reason_of
from kernel import workflow_id_of

__all__ = ["Reason", "Situation", "StepView", "SummaryView", "TranscriptView", "render_markdown", "summary_view"]

SHARE = {"preprocess": (0.0, 40.0), "transcribe": (40.0, 75.0), "compose": (75.0, 95.0), "finalize": (95.0, 100.0)}
"""The part of the whole that each step is, in per cent."""
USUAL_TALK_S = 1800.0

_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_TAGS = nh3.ALLOWED_TAGS - {"img", "area", "map", "bdo", "ruby", "rt", "rp", "rtc"}


class StepView(msgspec.Struct, frozen=True):
    """One of the four steps."""

    name: str
    status: str
    attempt: int


class SummaryView(msgspec.Struct, frozen=True, kw_only=True):
    """A summary as its owner sees it. `text` is Markdown, `html` its sanitised form; both are empty until the end."""

    id: str
    url: str
    title: str
    state: SummaryState
    step: str | None
    steps: list[StepView]
    progress: int
    reason: Reason | None
    round: int
    workflow_id: str
    session_id: str
    text: str
    html: str
    chapters: list[Chapter]
    usage: Usage
    created_at: datetime
    finished_at: datetime | None
    error: str | None
    style: Style
    language: Language
    writer: str


class TranscriptView(msgspec.Struct, frozen=True, kw_only=True):
    """What was said. Seconds count from the recording's start; `note` says what is missing."""

    language: str | None
    segments: list[SpeechSegment]
    gaps: list[Gap]
    decoded_seconds: float
    expected_seconds: float
    note: str | None = None


def summary_view(now: datetime, situation: Situation, *, writer: str) -> SummaryView:
    """The view of a situation. `writer`: the model that writes where the record does not name the one that wrote."""
    summary, session = situation.summary, situation.session
    text = summary.text if summary.state == "completed" else ""
    return SummaryView(
        id=summary.summary_id,
        url=session.url if session else "",
        title=session.title if session else "",
        state=summary.state,
        step=situation.step,
        steps=_steps(situation),
        progress=_progress(situation),
        reason=reason_of(now, situation),
        round=summary.round,
        workflow_id=workflow_id_of(summary_key(summary.summary_id)),
        session_id=summary.session_id,
        text=text,
        html=render_markdown(text) if text else "",
        chapters=summary.chapters if text else [],
        usage=summary.usage,
        created_at=summary.created_at,
        finished_at=summary.finished_at,
        error=summary.error,
        style=summary.style,
        language=summary.language,
        writer=summary.model or writer,
    )


def transcript_view(transcript: TranscriptRecord, session: SessionRecord | None) -> TranscriptView:
    """The view of a transcript."""
    return TranscriptView(
        language=transcript.language,
        segments=transcript.segments,
        gaps=session.gaps if session else [],
        decoded_seconds=transcript.decoded_s,
        expected_seconds=transcript.expected_s,
        note=transcript.error,
    )


@lru_cache(maxsize=1024)
def render_markdown(text: str) -> str:
    """Markdown as HTML that is safe to put into a page: no raw HTML, no images, no scripts, no referrers."""
    html = _markdown.render(text)
    return nh3.clean(html, tags=_TAGS, url_schemes={"http", "https", "mailto"}, link_rel="noopener noreferrer nofollow")


def _steps(situation: Situation) -> list[StepView]:
    known = situation.own.steps if situation.own else {}
    if situation.own and (situation.own.status in ENDED or not situation.ended):
        return [_step(name, str(known[name].status), known[name].attempt, situation) for name in SUMMARY.steps]
    attempts = {name: step.attempt for name, step in known.items()}
    return [
        StepView(name, status, attempts.get(name) or int(status != "pending")) for name, status in _presumed(situation)
    ]


def _step(name: str, status: str, attempt: int, situation: Situation) -> StepView:
    """A step as its snapshot says, which may lag: what lies before the present step has been completed."""
    passed = situation.step is not None and SUMMARY.steps.index(name) < SUMMARY.steps.index(situation.step)
    if passed and status not in ("completed", "skipped"):
        return StepView(name, "completed", max(attempt, 1))
    return StepView(name, status, attempt)


def _presumed(situation: Situation) -> list[tuple[str, str]]:
    """Step statuses as they follow from the record, where no snapshot says more: a dying worker may take its last."""
    if situation.step is None:
        return [(name, "completed") for name in SUMMARY.steps]
    place = SUMMARY.steps.index(situation.step)
    here = {"failed": "failed", "canceled": "skipped"}.get(situation.summary.state, "running")
    return [
        (name, "completed" if at < place else here if at == place else "pending")
        for at, name in enumerate(SUMMARY.steps)
    ]


def _progress(situation: Situation) -> int:
    """Per cent of the whole; it never counts what is not done."""
    if situation.step is None:
        return 100
    begin, end = SHARE[situation.step]
    return int(begin + (end - begin) * _share_done(situation))


def _share_done(situation: Situation) -> float:
    session, transcript = situation.session, situation.transcript
    if situation.step == "transcribe":
        return transcript.progress / 100 if transcript else 0.0
    if situation.step != "preprocess" or session is None:
        return 0.0
    # nobody knows how long a live stream goes on: its share grows, ever slower
    so_far = 0.1 + 0.7 * (1 - exp(-session.captured_s / USUAL_TALK_S))
    return {"scheduled": 0.0, "live": so_far, "ended": 0.9, "ready": 1.0}.get(session.state, 0.0)
