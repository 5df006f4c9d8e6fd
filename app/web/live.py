"""`GET /api/summaries/{id}/events` and `GET /api/events`: what happens, as it happens.

MongoDB says what is true, the client stream only what is new: the record is read again whenever the stream hints at
a change and at a steady pace besides, so that readers arrive at the end with Redis gone.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from time import monotonic

import msgspec
from litestar import Router, get

from activities.plans import summary_key
from app.views import SummaryView
from app.web import sse
from app.web.access import signed_in
from app.web.event_stream import EventStream
from app.web.parts import Parts, SignedIn
from app.web.reader import Reader, state_json
from app.web.summaries import SummaryId, owned
from kernel.errors import StoreUnavailable
from kernel.frames import TEXT
from kernel.stream import ClientStreams, Idle, Position, Received, StreamKey, WasReset

TAGS = ["events"]
IDLE_S = 1.0
LOOK_EVERY_S = {"writing": 5.0}
"""While text arrives the stream itself brings the news; in the other states nothing may come for minutes."""
LIST_EVERY_S = 2.0
LIST_LENGTH = 100
COMMENT_EVERY_S = 15.0

Item = Received | WasReset | Idle
Look = Callable[[], Awaitable[SummaryView | None]]


@get("/summaries/{summary_id:str}/events", tags=TAGS, summary="One summary's progress and text as it is written")
async def summary_events(request: SignedIn, parts: Parts, summary_id: SummaryId) -> EventStream:
    record = await owned(request, parts, summary_id)
    claim = Position.parse(request.headers.get("last-event-id", ""))

    async def look() -> SummaryView | None:
        return await parts.subscriptions.find(request.user.user_id, summary_id)

    narration = Narration(record, look, parts.streams, Reader(claim))
    return EventStream(parts.counted.read(narration.chunks()), parts.stopping)


@get("/events", tags=TAGS, summary="The state of all my summaries, on one connection")
async def all_events(request: SignedIn, parts: Parts) -> EventStream:
    async def look() -> list[SummaryView]:
        return await parts.subscriptions.listing(request.user.user_id, LIST_LENGTH, None)

    return EventStream(parts.counted.read(list_chunks(look)), parts.stopping)


class Narration:
    """Tells one reader of one summary everything, from the record and the stream of its round."""

    def __init__(self, record: SummaryView, look: Look, streams: ClientStreams, reader: Reader) -> None:
        self._record = record
        self._look = look
        self._streams = streams
        self._reader = reader
        self._comments = Comments()
        self._looked_at = monotonic()
        self._hinted = False

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The bytes to send, up to and including `done`."""
        yield sse.RETRY
        for event in self._reader.on_record(self._record):
            yield sse.encode(event)
        while not self._reader.ended:
            async with aclosing(self._one_round()) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _one_round(self) -> AsyncGenerator[bytes, None]:
        """Until the record ends or moves to another round."""
        key = self._key()
        async with aclosing(_items(self._streams, key)) as items:
            async for item in items:
                for event in await self._news(item):
                    yield sse.encode(event)
                yield self._comments.due()
                if self._reader.ended or self._key() != key:
                    return

    async def _news(self, item: Item) -> list[sse.Event]:
        events = self._from_stream(item)
        if self._must_look(item):
            events += self._reader.on_record(await self._look_again())
        return events

    def _from_stream(self, item: Item) -> list[sse.Event]:
        if isinstance(item, Idle):
            return self._reader.on_quiet()
        if isinstance(item, WasReset):
            return self._reader.on_reset()
        return self._reader.on_text(item.position, item.payload.decode()) if item.kind == TEXT else []

    def _key(self) -> StreamKey:
        return StreamKey(summary_key(self._record.id), self._record.workflow_id, self._record.round)

    def _must_look(self, item: Item) -> bool:
        """A control frame says that the record has changed; otherwise it is a matter of time.

        A hint is followed by a second look soon: the snapshots that the steps are shown from lag behind the record.
        """
        hinted = isinstance(item, Received) and item.kind != TEXT
        every_s = IDLE_S if self._hinted else LOOK_EVERY_S.get(self._record.state, IDLE_S)
        due = hinted or monotonic() - self._looked_at >= every_s
        self._hinted = hinted if due else self._hinted
        return due

    async def _look_again(self) -> SummaryView:
        """The record as it is now, or as last seen while the database is away. A removed one counts as canceled."""
        self._looked_at = monotonic()
        try:
            found = await self._look()
        except StoreUnavailable:
            return self._record
        gone = msgspec.structs.replace(self._record, state="canceled", reason=None, text="", html="")
        self._record = found or gone
        return self._record


async def _items(streams: ClientStreams, key: StreamKey) -> AsyncGenerator[Item, None]:
    """Everything from the stream, and after its terminal frame a tick a second until the record shows the end."""
    async for item in streams.follow(key, None, IDLE_S):
        yield item
    while True:
        yield Idle()
        await asyncio.sleep(IDLE_S)


class Comments:
    """Says when a connection needs a comment to stay open."""

    def __init__(self) -> None:
        self._last = monotonic()

    def due(self) -> bytes:
        """A comment if one is due, else nothing."""
        if monotonic() - self._last < COMMENT_EVERY_S:
            return b""
        self._last = monotonic()
        return sse.COMMENT


async def list_chunks(look: Callable[[], Awaitable[list[SummaryView]]]) -> AsyncGenerator[bytes, None]:
    """Every summary once, then each that changes, and the ids of those that were removed."""
    yield sse.RETRY
    comments, known = Comments(), dict[str, bytes]()
    while True:
        async for event in _changes(look, known):
            yield sse.encode(event)
        yield comments.due()
        await asyncio.sleep(LIST_EVERY_S)


async def _changes(
    look: Callable[[], Awaitable[list[SummaryView]]], known: dict[str, bytes]
) -> AsyncIterator[sse.Event]:
    try:
        views = await look()
    except StoreUnavailable:
        return
    states = {view.id: state_json(view) for view in views}
    for summary_id, state in states.items():
        if known.get(summary_id) != state:
            yield sse.Event("summary", state)
    for summary_id in known.keys() - states.keys() if len(views) < LIST_LENGTH else ():
        yield sse.Event("removed", msgspec.json.encode({"id": summary_id}))
    known.clear()
    known.update(states)


router = Router("/api", route_handlers=[summary_events, all_events], guards=[signed_in])
