"""The business objects as the subscription service and the views see them: with more than activities need."""

from datetime import datetime

from activities.payloads import Session, Summary, Transcript


class SessionRecord(Session, frozen=True, kw_only=True):
    """A session with its place in its stream, its times and its present trouble."""

    number: int  # 1 is the stream's first session
    trouble: str | None = None  # what keeps the recording from going on
    trouble_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    live_at: datetime | None = None
    ended_at: datetime | None = None


class TranscriptRecord(Transcript, frozen=True, kw_only=True):
    """A transcript with its times."""

    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None


class SummaryRecord(Summary, frozen=True, kw_only=True):
    """A summary with its times and its removal."""

    incarnation: int = 0  # how often the same subscription was removed before
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    removed_at: datetime | None = None  # hidden; undone or carried out soon
    purged_at: datetime | None = None  # the removal is being carried out, for good


class KeyReused(Exception):
    """An Idempotency-Key came with another request than before."""
