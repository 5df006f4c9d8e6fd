"""The client stream: what a streaming step has written so far, for any number of readers that come and go.

Nothing here changes a business result, and nothing here raises for a Redis that is away: losing all of Redis costs the
animation and nothing else. Reading (FrameLists) knows no reader; what one reader has seen is its Cursor.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from weakref import WeakValueDictionary

import msgspec
from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.errors import BrokerUnavailable, StaleFrames
from kernel.frame_lists import FrameLists, Page, Position, StreamKey
from kernel.frames import NOTICE, TERMINAL, Frame, UnknownFrameVersion, decode
from kernel.sink import Sink

__all__ = ["ClientStreams", "Cursor", "Idle", "Position", "Received", "StreamKey", "WasReset"]

PAGE = 256
"""Most frames read in one step."""

SHORTEST_POLL_S, LONGEST_POLL_S, POLL_GROWTH = 0.05, 0.25, 1.5
"""A reader that has caught up looks again after the first, and while nothing comes ever later, up to the second."""

_log = logging.getLogger(__name__)


class Received(msgspec.Struct, frozen=True):
    """A frame at its position; `kind` as in `kernel.frames`, payload without the header byte."""

    position: Position
    kind: int
    payload: bytes


class WasReset(msgspec.Struct, frozen=True):
    """What was received so far is void: the stream begins again at its first frame."""


class Idle(msgspec.Struct, frozen=True):
    """Nothing came for `idle_s` seconds, or Redis is away: time to read the record itself."""


class Cursor:
    """What one reader has seen: pure, so that one read can serve many readers of a stream."""

    def __init__(self, after: Position | None = None) -> None:
        self.generation = after.generation if after else 0
        self.next = after.offset + 1 if after else 0
        self.finished = False
        self._fresh = True

    def take(self, page: Page) -> Iterator[Received | WasReset]:
        """What this page brings; `finished` after the terminal frame.

        A reader that comes after the end gets the terminal reference at once: the final text is in the record.
        """
        if page.terminal is not None and (self._fresh or not page.frames):
            yield self._finish(page, page.terminal)
            return
        if not page.generation:
            return
        if self.generation and (self.generation, self.next) != (page.generation, page.start):
            yield WasReset()
        self.generation, self.next, self._fresh = page.generation, page.start, False
        for record in page.frames:
            frame = _decode(record)
            yield Received(Position(self.generation, self.next), frame.kind, frame.payload)
            self.next += 1
            self.finished = frame.kind == TERMINAL

    def _finish(self, page: Page, reference: bytes) -> Received:
        self.finished = True
        return Received(Position(page.generation, max(0, page.length - 1)), TERMINAL, reference)


class ClientStreams:
    """The streams of all objects under one key prefix. No method raises for a Redis fault.

    A stream is kept for `live_s` seconds after its last frame; once it has ended, its frames for `frames_s` and its
    terminal reference for `reference_s`.
    """

    def __init__(
        self,
        redis: Redis,
        prefix: str,
        clock: Clock,
        *,
        live_s: float = 2 * 3600.0,
        frames_s: float = 5 * 60.0,
        reference_s: float = 24 * 3600.0,
    ) -> None:
        self._lists = FrameLists(redis, prefix, clock, live_s=live_s, frames_s=frames_s, reference_s=reference_s)
        self._sinks: WeakValueDictionary[StreamKey, Sink] = WeakValueDictionary()

    async def reset(self, key: StreamKey) -> int:
        """Begin a new list, so that readers drop what they have; its generation, 0 when Redis could not be reached."""
        try:
            return await self._lists.reset(key)
        except BrokerUnavailable as fault:
            _log.warning("Client stream of %s was not reset: %s", key.object_id, fault)
            return 0

    async def open(self, key: StreamKey) -> Sink:
        """Reset the stream and write to it from now on; an earlier writer's frames are refused."""
        sink = Sink(self._lists, key, await self.reset(key))
        self._sinks[key] = sink
        return sink

    async def notify(self, key: StreamKey) -> None:
        """Tell readers to look at the record again; text written here before it goes first."""
        await self._flush(key)
        try:
            await self._lists.notify(key)
        except (BrokerUnavailable, StaleFrames) as fault:
            _log.info("Client stream of %s takes no notice: %s", key.object_id, fault)

    async def end(self, key: StreamKey, reference: bytes, generation: int = 0) -> None:
        """Close the stream: text written here first, then the terminal frame; later appends are refused.

        `reference` is what readers get as the terminal payload. `generation` 0 closes whichever list there is, and a
        repeated end changes nothing. Call it after the terminal state has been committed.
        """
        await self._flush(key)
        try:
            await self._lists.end(key, reference, generation)
        except (BrokerUnavailable, StaleFrames) as fault:
            _log.info("Client stream of %s was not ended: %s", key.object_id, fault)

    async def terminal(self, key: StreamKey) -> bytes | None:
        """The terminal reference; None while the stream is live, unknown, or Redis is away."""
        try:
            return await self._lists.terminal(key)
        except BrokerUnavailable:
            return None

    async def follow(
        self, key: StreamKey, after: Position | None, idle_s: float
    ) -> AsyncIterator[Received | WasReset | Idle]:
        """Every frame from the first one on, or from the one behind `after`, as they come, until the terminal frame.

        WasReset comes before frames of another generation than the last (or than `after`). Idle comes at least every
        `idle_s` seconds while nothing else does: a stream that is not there yet, a slow writer, a Redis that is away.
        """
        cursor, poll_s, idle_at = Cursor(after), SHORTEST_POLL_S, _now() + idle_s
        while not cursor.finished:
            page = await self._look(key, cursor)
            came = False
            for item in cursor.take(page) if page else ():
                came = True
                yield item
            if came:
                poll_s, idle_at = SHORTEST_POLL_S, _now() + idle_s
            elif _now() >= idle_at:
                yield Idle()
                idle_at = _now() + idle_s
            if page and len(page.frames) == PAGE:
                continue
            await asyncio.sleep(min(poll_s, max(SHORTEST_POLL_S, idle_at - _now())))
            poll_s = min(POLL_GROWTH * poll_s, LONGEST_POLL_S)

    async def _look(self, key: StreamKey, cursor: Cursor) -> Page | None:
        try:
            return await self._lists.read(key, cursor.generation, cursor.next, PAGE)
        except BrokerUnavailable as fault:
            _log.debug("Client stream of %s is not read: %s", key.object_id, fault)
            return None

    async def _flush(self, key: StreamKey) -> None:
        sink = self._sinks.get(key)
        if sink is not None:
            await sink.flush()


def _decode(record: bytes) -> Frame:
    """A frame of another release's version is not shown; the reader is told to look at the record instead."""
    try:
        return decode(record)
    except UnknownFrameVersion as refused:
        _log.warning("A client stream frame was refused: %s", refused)
        return Frame(NOTICE, b"")


def _now() -> float:
    return asyncio.get_running_loop().time()
