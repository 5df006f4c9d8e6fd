"""Inputs, outputs and checkpoints of the four workflows, and the business facts their ports speak of.

All of these cross processes and versions: fields are only added, with a default.
"""

from datetime import datetime
from typing import Literal

import msgspec

SessionState = Literal["scheduled", "live", "ended", "ready", "unavailable"]
SummaryState = Literal["waiting_for_stream", "transcribing", "writing", "completed", "failed", "canceled"]
TranscriptState = Literal["pending", "running", "completed", "failed"]
Style = Literal["brief", "detailed", "chapters", "minutes"]
Language = Literal["auto", "en", "zh"]


# ---- workflow inputs (all carry their round as fencing_token) ------------------------------------------------------


class WatchInput(msgspec.Struct, frozen=True):
    """Input of `stream_watch`."""

    session_id: str
    fencing_token: int


class TranscriptInput(msgspec.Struct, frozen=True):
    """Input of `stream_transcript`."""

    transcript_id: str
    fencing_token: int


class FanoutInput(msgspec.Struct, frozen=True):
    """Input of `stream_fanout`. `topic` is one of those that `plans.SIGNAL_OF` lists."""

    topic: str
    source_id: str  # a session or a transcript
    fencing_token: int


class SummaryInput(msgspec.Struct, frozen=True):
    """Input of `summary`, with the decisions taken at the entrance."""

    summary_id: str
    user_id: str
    session_id: str
    style: Style
    language: Language
    fencing_token: int


# ---- sources --------------------------------------------------------------------------------------------------------


class MediaSegment(msgspec.Struct, frozen=True):
    """One segment as a playlist names it: where it is and how to read it."""

    sequence: int
    url: str
    duration_s: float
    byte_range: tuple[int, int] | None = None  # length, offset
    map_url: str | None = None
    map_range: tuple[int, int] | None = None
    key_url: str | None = None
    key_iv: str | None = None  # hexadecimal
    discontinuity: bool = False
    program_time: datetime | None = None


class PlaylistSnapshot(msgspec.Struct, frozen=True):
    """One reading of a media playlist. `media_url` is the address to poll next (after master and redirects)."""

    media_url: str
    target_duration_s: float
    segments: list[MediaSegment]
    ended: bool
    title: str | None = None


class Gap(msgspec.Struct, frozen=True):
    """A stretch of the stream that could not be captured: recorded, never a failure."""

    start_s: float  # on the recording's time line
    duration_s: float
    reason: str


class CaptureCheckpoint(msgspec.Struct, frozen=True):
    """Where the recording stands; any worker continues from here."""

    media_url: str
    next_sequence: int
    position_s: float  # end of the recorded time line, gaps included
    last_news_at: datetime  # when the playlist last grew
    started_at: datetime
    faults: int = 0  # consecutive failed polls
    stored: int = 0  # segments stored


class Tail(msgspec.Struct, frozen=True):
    """The last segment that a recording dealt with, as the playlist named it."""

    sequence: int
    name: str  # file name and range


class Packaged(msgspec.Struct, frozen=True):
    """The packaged recording: 16 kHz mono Opus in Ogg."""

    media_id: str
    duration_s: float
    size_bytes: int


# ---- speech ---------------------------------------------------------------------------------------------------------


class SpeechSegment(msgspec.Struct, frozen=True):
    """Recognised words between two times, in seconds from the recording's start."""

    start: float
    end: float
    text: str


class SpeechStatus(msgspec.Struct, frozen=True):
    """What the speech service says of a task."""

    task_id: str
    state: Literal["queued", "running", "completed", "failed"]
    progress: float = 0.0  # percent
    language: str | None = None
    segments: list[SpeechSegment] = []
    decoded_s: float = 0.0
    error: str | None = None
    retryable: bool = False


class WindowPoint(msgspec.Struct, frozen=True):
    """How far a recording has been cut into windows: inside which segment, and where on the time line that is."""

    sequence: int = 0  # of the segment that the next window begins in
    skip: int = 0  # samples of it that belong to the window before
    position_s: float = 0.0
    end_s: float = 0.0  # where the segment before ended, by the playlist's word


class AudioWindow(msgspec.Struct, frozen=True):
    """A stretch of a recording as a file of its own (Ogg Opus), and where the next one begins."""

    audio: bytes
    start_s: float
    end_s: float
    following: WindowPoint


class TranscribeCheckpoint(msgspec.Struct, frozen=True):
    """The external task of the current window; the provider is named so that only it is asked again.

    `following` None: the window is the whole recording.
    """

    window: int
    provider: str
    task_id: str
    submitted_at: datetime
    deadline: datetime
    poll_faults: int = 0
    start_s: float = 0.0
    end_s: float = 0.0
    following: WindowPoint | None = None


# ---- writing --------------------------------------------------------------------------------------------------------


class Chapter(msgspec.Struct, frozen=True):
    """A part of the talk. `start` is a time that exists in the transcript."""

    start: float
    title: str


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the provider counted them. `cost`: what they came to, where their price is known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        costs = [usage.cost for usage in (self, other) if usage.cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(costs) if costs else None,
        )


class Composed(msgspec.Struct, frozen=True):
    """The finished text of one round."""

    text: str
    chapters: list[Chapter]
    usage: Usage
    model: str


class WriteRequest(msgspec.Struct, frozen=True):
    """What the writer is asked for: a summary, or notes of one section of a talk that it cannot read at once."""

    title: str
    style: Style
    language: str  # auto, or a code such as en, zh
    segments: list[SpeechSegment]
    gaps: list[Gap] = []
    kind: Literal["summary", "notes"] = "summary"
    condensed: bool = False  # `segments` are notes themselves


class Notes(msgspec.Struct, frozen=True):
    """What the model noted of one section. `too_long`: it could not read so much at once, and noted nothing."""

    start_s: float
    end_s: float
    lines: list[SpeechSegment] = []
    usage: Usage = Usage()
    too_long: bool = False


# ---- business objects as activities see them ------------------------------------------------------------------------


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A broadcast from start to end."""

    session_id: str
    stream_id: str
    url: str
    round: int
    state: SessionState
    title: str
    captured_s: float = 0.0
    gaps: list[Gap] = []
    media_id: str | None = None
    duration_s: float = 0.0
    error: str | None = None
    hint: str | None = None  # a webhook's word: started, ended
    tail: Tail | None = None  # where the recording ended
    file: bool = False  # it is no stream but a single media file


class StreamHook(msgspec.Struct, frozen=True):
    """What signs the hooks of a stream, and the session that they are about now."""

    secret: str
    session_id: str


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """The shared transcription of a session under one provider, model and set of options."""

    transcript_id: str
    session_id: str
    round: int
    state: TranscriptState
    provider: str
    model: str
    language: str | None = None
    progress: float = 0.0
    segments: list[SpeechSegment] = []
    gaps: list[Gap] = []
    decoded_s: float = 0.0
    expected_s: float = 0.0
    error: str | None = None
    window_count: int = 0  # windows whose text is stored
    following: WindowPoint | None = None  # where the next one begins; None where the last one was the whole recording


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A person's subscription to a session and its result."""

    summary_id: str
    user_id: str
    session_id: str
    round: int
    state: SummaryState
    style: Style
    language: Language
    text: str = ""
    composed_round: int = 0  # the round whose text this is
    section: int = 0  # of `sections`: how far a talk that is too long for the model has been read
    sections: int = 0
    chapters: list[Chapter] = []
    usage: Usage = Usage()
    model: str = ""
    error: str | None = None
