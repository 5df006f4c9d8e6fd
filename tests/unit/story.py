"""The activities' ports in memory, and a clock to step through polls.

Ports are Protocols, which these fulfil; nothing of MongoDB is imitated here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec

from activities.payloads import (
    Composed,
    Gap,
    MediaSegment,
    Notes,
    Packaged,
    PlaylistSnapshot,
    Session,
    SpeechStatus,
    Summary,
    SummaryInput,
    Transcript,
    Usage,
    WindowPoint,
)
from activities.timeline import CapturedSegment, address_of
from kernel import Outcome, Signal, Sleep, StaleRound, StepContext, WaitForSignal, WorkflowContext, Yield

START = datetime(2026, 12, 1, 20, 0, tzinfo=UTC)


class Sink:
    """A client stream that keeps its text."""

    def __init__(self) -> None:
        self.text = ""
        self.flushed = False

    async def write(self, text: str) -> None:
        self.text += text

    async def flush(self) -> None:
        self.flushed = True


@dataclass
class Stage:
    """What the kernel gives an activity, with a time that the test moves."""

    input: msgspec.Struct
    outputs: dict[str, Any] = field(default_factory=dict)
    now: datetime = START
    checkpoint: Any = None
    sinks: list[Sink] = field(default_factory=list)
    attempt: int = 1

    def context(self) -> StepContext:
        """The context of the next call; the checkpoint goes through its stored form."""
        return StepContext(
            **self._shared(None), step="any", attempt=self.attempt, checkpoint=self.checkpoint, open_stream=self._open
        )

    def final(self, error: str | None = None) -> WorkflowContext:
        """The context of a finalizer."""
        return WorkflowContext(**self._shared(error))

    def take(self, outcome: Outcome) -> Outcome:
        """Keep a directive's checkpoint and let its time pass."""
        if isinstance(outcome, Sleep | WaitForSignal | Yield):
            point = outcome.checkpoint
            self.checkpoint = None if point is None else msgspec.to_builtins(point, builtin_types=(datetime,))
        delay_s = outcome.delay_s if isinstance(outcome, Sleep) else getattr(outcome, "poll_fallback_s", 0) or 0
        self.now += timedelta(seconds=delay_s)
        return outcome

    async def _open(self) -> Sink:
        self.sinks.append(Sink())
        return self.sinks[-1]

    def _shared(self, error: str | None) -> dict[str, Any]:
        given = msgspec.to_builtins(self.input)
        identity = {"workflow_id": "wf_1", "biz_key": "any:1", "type": "any", "round": 1, "run": 1, "priority": 0}
        return {**identity, "input": given, "outputs": self.outputs, "error": error, "now": lambda: self.now}


class Publisher:
    """Remembers what was started and told. `finds`: the instance that stands under a biz_key."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int]] = []
        self.signals: list[Signal] = []
        self.finds: dict[str, Any] = {}

    async def start_or_resume(self, type: str, biz_key: str, input: Any, *, round: int, priority: int) -> Any:
        self.started.append((biz_key, round))
        instance = self.finds.get(biz_key, SimpleNamespace(status="running", round=round))
        return SimpleNamespace(instance=instance, activated=biz_key not in self.finds)

    async def deliver_signal(self, signal: Signal) -> bool:
        [inserted] = await self.deliver_signals([signal])
        return inserted

    async def deliver_signals(self, signals: Sequence[Signal]) -> list[bool]:
        self.signals += signals
        return [True] * len(signals)


class Sessions:
    """The port in memory: one session."""

    def __init__(self, **fields: Any) -> None:
        usual = {"session_id": "ses_1", "stream_id": "str_1", "url": "https://live.example/talk.m3u8"}
        self.session = Session(**{**usual, "round": 1, "state": "scheduled", "title": "Talk", **fields})
        self.segments: dict[int, tuple[CapturedSegment, bytes, bool]] = {}
        self.troubles: list[str | None] = []
        self.writes: list[str] = []

    async def get(self, session_id: str) -> Session | None:
        return self.session if session_id == self.session.session_id else None

    async def mark(
        self,
        session_id: str,
        round: int,
        state: Any,
        *,
        title: str | None = None,
        tail: Any = None,
        file: bool = False,
    ) -> None:
        fields = {"title": title or self.session.title, "tail": tail, "file": file or self.session.file}
        self._set(round, f"mark {state}", state=state, **fields)

    async def store_segment(
        self,
        session_id: str,
        round: int,
        segment: MediaSegment,
        start_s: float,
        data: bytes,
        *,
        source_sequence: int | None = None,
    ) -> None:
        known = CapturedSegment(
            segment.sequence, source_sequence or 0, address_of(segment), start_s, segment.duration_s
        )
        self.segments.setdefault(segment.sequence, (known, data, segment.discontinuity))

    async def captured(self, session_id: str, beyond: int) -> list[CapturedSegment]:
        return [known for number, (known, _, _) in sorted(self.segments.items()) if number > beyond]

    async def note_trouble(self, session_id: str, round: int, text: str | None) -> None:
        self.troubles.append(text)

    async def store_progress(self, session_id: str, round: int, captured_s: float, gaps: Any) -> None:
        self._set(round, "progress", captured_s=captured_s, gaps=list(gaps))

    async def attach_media(self, session_id: str, round: int, packaged: Packaged) -> None:
        self._set(round, "media", media_id=packaged.media_id, duration_s=packaged.duration_s)

    async def mark_ready(self, session_id: str, round: int) -> None:
        self._set(round, "ready", state="ready")

    async def mark_unavailable(self, session_id: str, round: int, error: str) -> None:
        self._set(round, "unavailable", state="unavailable", error=error)

    def _set(self, round: int, write: str, **fields: Any) -> None:
        if round != self.session.round:
            raise StaleRound
        self.writes.append(write)
        self.session = msgspec.structs.replace(self.session, **fields)

    @property
    def data(self) -> bytes:
        """Everything that was recorded, in order."""
        return b" ".join(data for _, (_, data, _) in sorted(self.segments.items()))


class Files:
    """The port in memory: gives what it was made with, the last one again and again."""

    def __init__(self, *outcomes: Packaged | Exception) -> None:
        self._outcomes = list(outcomes)
        self.read: list[str] = []

    async def record(self, url: str, session_id: str, round: int) -> Packaged:
        self.read.append(url)
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Transcripts:
    """The port in memory: one transcript."""

    def __init__(self, **fields: Any) -> None:
        usual = {"transcript_id": "tra_1", "session_id": "ses_1", "provider": "asr", "model": "base"}
        self.transcript = Transcript(**{**usual, "round": 1, "state": "pending", **fields})
        self.ensured = 0
        self.windows: dict[int, tuple[SpeechStatus, float]] = {}

    async def get(self, transcript_id: str) -> Transcript | None:
        return self.transcript if transcript_id == self.transcript.transcript_id else None

    async def ensure(self, session_id: str) -> Transcript:
        self.ensured += 1
        if self.transcript.state == "failed":
            self.transcript = msgspec.structs.replace(self.transcript, state="pending", round=self.transcript.round + 1)
        return self.transcript

    async def store_progress(self, transcript_id: str, round: int, progress: float) -> None:
        self._set(round, state="running", progress=progress)

    async def store_window(
        self,
        transcript_id: str,
        round: int,
        window: int,
        status: SpeechStatus,
        expected_s: float,
        following: WindowPoint | None,
    ) -> None:
        self._set(round, language=self.transcript.language or status.language, following=following)
        self.windows[window] = (status, expected_s)
        decoded_s = sum(one.decoded_s for one, _ in self.windows.values())
        self._set(round, window_count=len(self.windows), decoded_s=decoded_s)

    async def mark_completed(self, transcript_id: str, round: int) -> None:
        self._set(round, state="completed")

    async def mark_failed(self, transcript_id: str, round: int, error: str) -> None:
        self._set(round, state="failed", error=error)

    def _set(self, round: int, **fields: Any) -> None:
        if round != self.transcript.round:
            raise StaleRound
        self.transcript = msgspec.structs.replace(self.transcript, **fields)


SUMMARY_INPUT = SummaryInput("sum_1", "usr_1", "ses_1", "brief", "auto", 1)


class Summaries:
    """The port in memory: one summary, or many that wait."""

    def __init__(self, **fields: Any) -> None:
        usual = {"summary_id": "sum_1", "user_id": "usr_1", "session_id": "ses_1", "style": "brief"}
        initial = {"language": "auto", "round": 1, "state": "waiting_for_stream"}
        self.summary = Summary(**{**usual, **initial, **fields})
        self.holds: set[int] = set()
        self.quota: Exception | None = None
        self.crowd: list[Summary] = []
        self.sections: dict[str, Notes] = {}

    async def get(self, summary_id: str) -> Summary | None:
        return self.summary if summary_id == self.summary.summary_id else None

    async def hold_quota(self, summary_id: str, round: int) -> None:
        if self.quota:
            raise self.quota
        self.holds.add(round)

    async def return_quota(self, summary_id: str, round: int) -> None:
        self.holds.discard(round)

    async def mark(self, summary_id: str, round: int, state: Any) -> None:
        self._set(round, state=state)

    async def notes(self, summary_id: str) -> dict[str, Notes]:
        return self.sections

    async def store_notes(
        self, summary_id: str, round: int, key: str, notes: Notes, *, section: int, sections: int
    ) -> None:
        self._set(round, section=section, sections=sections)
        self.sections[key] = notes

    async def store_composed(self, summary_id: str, round: int, composed: Composed) -> None:
        self._set(round)
        if self.summary.composed_round < round:
            self._set(round, **msgspec.structs.asdict(composed), composed_round=round)

    async def mark_completed(self, summary_id: str, round: int) -> None:
        self._set(round, state="completed")

    async def mark_failed(self, summary_id: str, round: int, error: str) -> None:
        self._set(round, state="failed", error=error)

    async def waiting(self, topic: str, source_id: str, after: str, limit: int) -> list[Summary]:
        return [one for one in self.crowd if one.summary_id > after][:limit]

    def _set(self, round: int, **fields: Any) -> None:
        if round != self.summary.round:
            raise StaleRound
        self.summary = msgspec.structs.replace(self.summary, **fields)


class Writer:
    """Says what it is given: pieces of text, a usage, or an error to raise."""

    model = "scripted"

    def __init__(self, *items: str | Usage | Exception) -> None:
        self._items = items
        self.requests: list[Any] = []

    def say(self, *items: str | Usage | Exception) -> None:
        """From now on."""
        self._items = items

    def parts(self, request: Any) -> int:
        return 1

    async def write(self, request: Any) -> Any:
        self.requests.append(request)
        for item in self._items:
            if isinstance(item, Exception):
                raise item
            yield item


Answer = PlaylistSnapshot | Exception


class Source:
    """A live stream that answers as scripted: one answer a poll, the last one for good; so for broken segments."""

    def __init__(self, *answers: Answer, broken: Mapping[str, list[Exception | None]] | None = None) -> None:
        self._answers: Iterator[Answer] = iter(answers)
        self._last: Answer = answers[0]
        self._broken = {name: list(errors) for name, errors in (broken or {}).items()}
        self.asked: list[str] = []
        self.fetched: list[str] = []

    async def playlist(self, url: str) -> PlaylistSnapshot:
        self.asked.append(url)
        self._last = next(self._answers, self._last)
        if isinstance(self._last, Exception):
            raise self._last
        return self._last

    async def segment(self, segment: MediaSegment) -> bytes:
        name = segment.url.rpartition("/")[2]
        self.fetched.append(name)
        errors = self._broken.get(name, [None])
        error = errors[0] if len(errors) == 1 else errors.pop(0)
        if error:
            raise error
        return name.encode()


def window(first: int, last: int, *, ended: bool = False, path: str = "a", length_s: float = 2.0) -> PlaylistSnapshot:
    """A media playlist that names the segments `first` to `last`; none where `last` is smaller."""
    segments = [
        MediaSegment(number, f"https://live.example/{path}/{number}.ts", length_s) for number in range(first, last + 1)
    ]
    return PlaylistSnapshot("https://live.example/media.m3u8", length_s, segments, ended)


def gap_times(gaps: list[Gap]) -> list[tuple[float, float]]:
    """Start and length of each gap."""
    return [(gap.start_s, gap.duration_s) for gap in gaps]
