"""Where a streaming step writes its text: gathered for a moment, sent in the background, never in the step's way.

What readers have is always a beginning of what was written since the last Reset. A list that Redis has lost is begun
again with the whole text; a fault is logged and tried again; a writer that has been replaced falls silent.
"""

import asyncio
import logging
from collections import deque
from contextlib import suppress

from kernel.errors import BrokerUnavailable, StaleFrames
from kernel.frame_lists import FrameLists, StreamKey
from kernel.frames import TEXT, encode

GATHER_S = 0.1
FRAME_BYTES = 1024
"""Text is sent this long after it was written, or as soon as there is so much of it."""

SHORTEST_REST_S, LONGEST_REST_S = 0.5, 2.0
"""After a fault nothing is sent for so long: doubled from the first to the second."""

GIVE_UP_S = 60.0
"""Without new text, a Redis that stays away is no longer tried after this."""

_log = logging.getLogger(__name__)


def cut(text: bytes, limit: int) -> list[bytes]:
    """UTF-8 text in pieces of at most `limit` bytes (4 or more), each of whole characters."""
    pieces: list[bytes] = []
    while text:
        end = min(limit, len(text))
        while end < len(text) and text[end] & 0xC0 == 0x80:  # in the middle of a character
            end -= 1
        pieces.append(text[:end])
        text = text[end:]
    return pieces


class Sink:
    """The writer of one generation of a stream; `generation` 0: Redis was away, and it has yet to be opened."""

    def __init__(self, lists: FrameLists, key: StreamKey, generation: int) -> None:
        self._lists, self._key = lists, key
        self._generation, self._open, self._silent = generation, generation > 0, False
        self._text = bytearray()  # all of it, for a list that has to begin again
        self._framed = 0  # bytes of it that stand in frames
        self._frames: deque[bytes] = deque()  # not known to be stored
        self._number = 1  # of the first of these
        self._sending = asyncio.Lock()
        self._enough = asyncio.Event()
        self._upkeep: asyncio.Task[None] | None = None
        self._rest_s, self._rest_until, self._written_at = SHORTEST_REST_S, 0.0, 0.0

    async def write(self, text: str) -> None:
        """Append text. Returns at once: it is sent within 100 ms, sooner when 1 KiB has gathered."""
        if self._silent or not text:
            return
        self._text += text.encode("utf-8", "replace")
        self._written_at = _now()
        if len(self._text) - self._framed >= FRAME_BYTES:
            self._enough.set()
        if self._upkeep is None or self._upkeep.done():
            self._upkeep = asyncio.create_task(self._keep_up(), name=f"client stream of {self._key.object_id}")

    async def flush(self) -> None:
        """Send what has been gathered. Returns when Redis has it, or could not be reached."""
        async with self._sending:
            gathered = bytes(self._text[self._framed :])
            self._frames.extend(encode(TEXT, piece) for piece in cut(gathered, FRAME_BYTES))
            self._framed = len(self._text)
            if _now() >= self._rest_until:
                await self._send()

    async def _keep_up(self) -> None:
        """Flush for as long as anything is left to send."""
        while self._behind and not self._given_up:
            resting_s = self._rest_until - _now()
            if resting_s > 0:
                await asyncio.sleep(resting_s)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(GATHER_S):
                        await self._enough.wait()
            self._enough.clear()
            await self.flush()

    @property
    def _behind(self) -> bool:
        return not self._silent and (bool(self._frames) or self._framed < len(self._text))

    @property
    def _given_up(self) -> bool:
        return self._rest_until > self._written_at + GIVE_UP_S

    async def _send(self) -> None:
        try:
            while self._frames and not self._silent:
                await self._send_first()
            self._rest_s = SHORTEST_REST_S
        except BrokerUnavailable as fault:
            _log.warning("Client stream of %s is not sent for %.1f s: %s", self._key.object_id, self._rest_s, fault)
            self._rest_until = _now() + self._rest_s
            self._rest_s = min(2 * self._rest_s, LONGEST_REST_S)
        except StaleFrames as stale:
            _log.info("Client stream of %s: %s", self._key.object_id, stale)
            self._silent = True
            self._frames.clear()

    async def _send_first(self) -> None:
        if not self._open:
            await self._begin_again()
        if await self._lists.append(self._key, self._generation, self._number, self._frames[0]):
            self._frames.popleft()
            self._number += 1
        else:
            self._open = False

    async def _begin_again(self) -> None:
        self._generation = await self._lists.reset(self._key, self._generation)
        self._frames = deque(encode(TEXT, piece) for piece in cut(bytes(self._text), FRAME_BYTES))
        self._framed = len(self._text)
        self._number, self._open = 1, True


def _now() -> float:
    return asyncio.get_running_loop().time()
