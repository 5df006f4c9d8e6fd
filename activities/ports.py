"""What the activities need from the world, as small Protocols. Adapters fulfil them; `app.wiring` joins the two.

Every business write takes the round (`fencing_token`) and raises `kernel.StaleRound` when the object serves another
round or has ended; a repeated write of the same fact is not an error.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from activities.payloads import (
    AudioWindow,
    Composed,
    Gap,
    MediaSegment,
    Notes,
    Packaged,
    PlaylistSnapshot,
    Session,
    SessionState,
    SpeechStatus,
    Summary,
    SummaryState,
    Tail,
    Transcript,
    Usage,
    WindowPoint,
    WriteRequest,
)


class SourceGone(Exception):
    """The source answered for good that it is not there (404, 410), with the reason as message."""


class SourceFault(Exception):
    """The source could not be read this time (time-out, 5xx, a broken connection); worth another try."""


class SourceRefused(Exception):
    """The source may not be read: a forbidden address, a format we do not take, DRM. Says which."""


class FileFound(SourceRefused):
    """There is a single media file at the address, no live stream."""


class LiveSource(Protocol):
    """A live stream as its address offers it. Raises SourceGone, SourceFault or SourceRefused."""

    async def playlist(self, url: str) -> PlaylistSnapshot:
        """Read the media playlist at `url`; a master playlist is followed to its best audio."""
        ...

    async def segment(self, segment: MediaSegment) -> bytes:
        """The decrypted bytes of a segment, its init section in front where it has one."""
        ...


class Files(Protocol):
    """Single media files."""

    async def record(self, url: str, session_id: str, round: int) -> Packaged:
        """Store the sound of the file at `url`, uploaded or on the web, as a recording of the session.

        The reference is returned. Raises SourceGone, SourceFault or SourceRefused.
        """
        ...


class Packager(Protocol):
    """Joins captured segments into one recording."""

    async def package(self, session_id: str, round: int) -> Packaged:
        """Decode all stored segments of the session in order, gaps as silence, into 16 kHz mono Opus.

        Stored in GridFS; the reference is returned. Repeating it replaces nothing that is referenced.
        """
        ...


class Sessions(Protocol):
    """Streams' sessions and their segments."""

    async def get(self, session_id: str) -> Session | None: ...

    async def mark(
        self,
        session_id: str,
        round: int,
        state: SessionState,
        *,
        title: str | None = None,
        tail: Tail | None = None,
        file: bool = False,
    ) -> None:
        """Move the session forward (`scheduled → live → ended`); `tail` says where it ended, `file` what it is."""
        ...

    async def store_segment(
        self, session_id: str, round: int, segment: MediaSegment, start_s: float, data: bytes
    ) -> None:
        """Keep one captured segment; a second capture of the same sequence changes nothing."""
        ...

    async def store_progress(self, session_id: str, round: int, captured_s: float, gaps: Sequence[Gap]) -> None:
        """Publish how much has been captured; `gaps` replaces the list."""
        ...

    async def attach_media(self, session_id: str, round: int, packaged: Packaged) -> None:
        """Write the reference of the packaged recording (last of all writes about it)."""
        ...

    async def mark_ready(self, session_id: str, round: int) -> None: ...

    async def mark_unavailable(self, session_id: str, round: int, error: str) -> None: ...


class Transcripts(Protocol):
    """Shared transcriptions."""

    async def get(self, transcript_id: str) -> Transcript | None: ...

    async def ensure(self, session_id: str) -> Transcript:
        """The transcript of the session under the provider, model and options in force; made if missing.

        A failed one is moved to its next round (state pending) so that it may be tried again.
        """
        ...

    async def store_progress(self, transcript_id: str, round: int, progress: float) -> None: ...

    async def store_window(
        self,
        transcript_id: str,
        round: int,
        window: int,
        status: SpeechStatus,
        expected_s: float,
        following: WindowPoint | None,
    ) -> None:
        """Keep the recognised text of one window, and where the next one begins; repeated, it replaces the same."""
        ...

    async def mark_completed(self, transcript_id: str, round: int) -> None: ...

    async def mark_failed(self, transcript_id: str, round: int, error: str) -> None: ...


class Summaries(Protocol):
    """Subscriptions and their results."""

    async def get(self, summary_id: str) -> Summary | None: ...

    async def hold_quota(self, summary_id: str, round: int) -> None:
        """Take the quota of this round once; raises QuotaExhausted. Holding it again changes nothing."""
        ...

    async def return_quota(self, summary_id: str, round: int) -> None:
        """Give back what this round holds; nothing held is fine."""
        ...

    async def mark(self, summary_id: str, round: int, state: SummaryState) -> None:
        """Move to a non-terminal state."""
        ...

    async def notes(self, summary_id: str) -> Mapping[str, Notes]:
        """What was stored of the sections, by key."""
        ...

    async def store_notes(
        self, summary_id: str, round: int, key: str, notes: Notes, *, section: int, sections: int
    ) -> None:
        """Keep the notes of one section; the key follows from what was asked, so that they are paid for once.

        `section` of `sections` have been read now.
        """
        ...

    async def store_composed(self, summary_id: str, round: int, composed: Composed) -> None:
        """Keep the text of this round (the record is not yet completed)."""
        ...

    async def mark_completed(self, summary_id: str, round: int) -> None: ...

    async def mark_failed(self, summary_id: str, round: int, error: str) -> None: ...

    async def waiting(self, topic: str, source_id: str, after: str, limit: int) -> list[Summary]:
        """Up to `limit` summaries that the topic concerns and that have not ended, by id, beyond `after`."""
        ...


class QuotaExhausted(Exception):
    """No quota is left for this person; says how much and until when."""


class RecordingMissing(Exception):
    """No recording is stored under this id."""


class Recordings(Protocol):
    """Packaged audio."""

    async def read(self, media_id: str) -> bytes:
        """The whole recording (Ogg Opus)."""
        ...


class Windows(Protocol):
    """Audio of a session that is still being recorded, or has just been."""

    async def next(self, session_id: str, point: WindowPoint, *, over: bool) -> AudioWindow | None:
        """The window that begins at `point`, cut at a silence. None: there is not enough for one yet.

        `over`: nothing will be recorded any more; then None means that there is no audio beyond `point`.
        """
        ...


class Speech(Protocol):
    """A speech recognition provider. `name` goes into the checkpoint.

    `whole`: it takes a recording of hours as one task, and goes on with it after a death.
    """

    name: str
    whole: bool

    async def submit(self, key: str, audio: bytes, *, language: str | None) -> str:
        """Submit audio under an idempotency key; the same key gives the same task id.

        Raises SpeechFault or SpeechRefused.
        """
        ...

    async def poll(self, task_id: str) -> SpeechStatus:
        """Ask for the task. Raises SpeechFault when the service cannot be asked now."""
        ...


class SpeechFault(Exception):
    """The speech service could not be reached or is not ready; worth another try.

    `retry_after_s` is its word.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class SpeechRefused(Exception):
    """The speech service will never take this audio; says why."""


class Writer(Protocol):
    """Writes summaries. Yields text as it comes; the last item is the usage."""

    model: str

    def parts(self, request: WriteRequest) -> int:
        """In how many parts the request must be sent so that each fits into the model's context; 1: it fits."""
        ...

    def write(self, request: WriteRequest) -> AsyncIterator[str | Usage]:
        """Stream the text as Markdown. Raises WriterFault (retry), TooLong (split) or WriterRefused (fatal)."""
        ...


class WriterFault(Exception):
    """The model could not be reached, was interrupted or answered with a transient error.

    `retry_after_s` is its word.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UselessAnswer(WriterFault):
    """The model answered, and its answer is no summary: worth a few more tries, but each is paid for."""


class WriterRefused(Exception):
    """The model will never answer this request: a wrong key, an unknown model, a refused prompt."""


class TooLong(Exception):
    """The request does not fit into the model's context; says what the model's server said."""
