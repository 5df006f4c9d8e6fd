"""The word of a stream's own system that it has started or ended: signed by it, stored, and rung to the watch.

It only makes the watch look at once; the watch's own poll remains the fallback, so that a lost, doubled or late word
changes nothing.
"""

import hmac
from hashlib import sha256
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from activities.payloads import StreamHook
from activities.plans import STREAM_HINT, watch_key
from activities.records import SessionRecord
from activities.starts import keep_watching
from kernel import Clock, Publisher, Signal, workflow_id_of

WINDOW_S = 300
"""How far a timestamp may be from now, either way."""


class HookRefused(Exception):
    """No stream of this id, or not signed by it, or too long ago. Which of these is not told."""


class StreamEvent(msgspec.Struct, frozen=True):
    """The body of a hook. `id` names the event: the same id again is the same event."""

    id: Annotated[str, Meta(min_length=1, max_length=100)]
    event: Literal["started", "ended"]


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 of `timestamp.body`, as `X-Baton-Signature` carries it."""
    return f"sha256={hmac.new(secret.encode(), timestamp.encode() + b'.' + body, sha256).hexdigest()}"


class HookedSessions(Protocol):
    """The sessions as hooks see them."""

    async def hook(self, stream_id: str) -> StreamHook | None:
        """What signs the hooks of a stream, and the session that they are about."""
        ...

    async def get(self, session_id: str) -> SessionRecord | None:
        """The session."""
        ...

    async def follow(self, session: SessionRecord) -> SessionRecord:
        """The session after one that is over."""
        ...

    async def store_hint(self, session_id: str, hint: Literal["started", "ended"]) -> bool:
        """Keep the word; False where the session has ended already."""
        ...


class StreamHooks:
    """Takes hooks for the present session of a stream."""

    def __init__(self, sessions: HookedSessions, publisher: Publisher, clock: Clock) -> None:
        self._sessions = sessions
        self._publisher = publisher
        self._clock = clock

    async def secret_of(self, stream_id: str) -> str | None:
        """What a stream's own system signs with; None where there is no such stream."""
        hook = await self._sessions.hook(stream_id)
        return hook.secret if hook else None

    async def take(self, stream_id: str, timestamp: str, signed: str, body: bytes) -> bool:
        """Store the event and wake the watch; False where it is about a session that is over.

        A stream that starts again is a new session, recorded from now on whether or not somebody waits already.

        Raises HookRefused, msgspec.ValidationError for a signed body that is no event, or StoreUnavailable.
        """
        hook = await self._sessions.hook(stream_id)
        expected = signature(hook.secret if hook else "", timestamp, body)
        if not hmac.compare_digest(expected.encode(), signed.encode()) or hook is None:
            raise HookRefused
        if not self._recent(timestamp):
            raise HookRefused
        event = msgspec.json.decode(body, type=StreamEvent)
        session = await self._sessions.get(hook.session_id)
        if session and event.event == "started" and _over_since(session, timestamp):
            session = await self._sessions.follow(session)
        if session is None or not await self._sessions.store_hint(session.session_id, event.event):
            return False
        if event.event == "started":
            await keep_watching(self._publisher, session)
        return await self._ring(session.session_id, session.round, event.id)

    async def _ring(self, session_id: str, round: int, event_id: str) -> bool:
        await self._publisher.deliver_signal(
            Signal(
                signal_id=f"hint:{session_id}:{round}:{event_id}",
                workflow_id=workflow_id_of(watch_key(session_id)),
                signal_type=STREAM_HINT,
                wait_key=session_id,
                generation=round,
            )
        )
        return True

    def _recent(self, timestamp: str) -> bool:
        if not timestamp.isascii() or not timestamp.isdigit():
            return False
        return abs(self._clock.hint(0).timestamp() - int(timestamp)) <= WINDOW_S


def _over_since(session: SessionRecord, timestamp: str) -> bool:
    """Whether the session was over before the event was signed: a late word of its own start begins nothing."""
    over_at = session.ended_at or session.updated_at
    return session.state in ("ready", "unavailable") and int(timestamp) > over_at.timestamp()
