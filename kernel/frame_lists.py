"""The client stream as Redis keeps it: a list of frames, its generation, and the terminal reference.

One method is one atomic step. Each step of a writer carries the generation that its Reset gave it, and an older one is
refused, so a list never mixes what two executions wrote.
"""

import re

import msgspec
from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.errors import StaleFrames
from kernel.frames import NOTICE, TERMINAL, encode
from kernel.scripts import Script


class StreamKey(msgspec.Struct, frozen=True):
    """Whose stream: the business object, the instance, and the round. Another round is another stream."""

    object_id: str
    workflow_id: str
    round: int


class Position(msgspec.Struct, frozen=True):
    """Which frame: `offset` counts from 0 in the list of one generation. As text, `generation-offset`."""

    generation: int
    offset: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "Position | None":
        """The position in a browser's `Last-Event-ID`, or None where it is not one."""
        found = re.fullmatch(r"([0-9]{1,15})-([0-9]{1,9})", text)
        return cls(int(found[1]), int(found[2])) if found else None


class Page(msgspec.Struct, frozen=True):
    """Frames read in one step, the first of them at `start`, from a list of `length`. Generation 0: there is no stream.

    `terminal` is the reference that a stream carries once it has ended.
    """

    generation: int
    start: int
    length: int
    terminal: bytes | None
    frames: list[bytes]


class FrameLists:
    """All streams under one key prefix. Every method raises BrokerUnavailable when Redis does not answer."""

    def __init__(
        self, redis: Redis, prefix: str, clock: Clock, *, live_s: float, frames_s: float, reference_s: float
    ) -> None:
        self._prefix, self._clock = prefix, clock
        self._live_ms, self._frames_ms = round(live_s * 1000), round(frames_s * 1000)
        self._reference_ms = round(reference_s * 1000)
        self._reset = Script(redis, "stream_reset")
        self._append = Script(redis, "stream_append")
        self._notify = Script(redis, "stream_notify")
        self._end = Script(redis, "stream_end")
        self._read = Script(redis, "stream_read")

    async def reset(self, key: StreamKey, known: int = 0) -> int:
        """Begin a new list; its generation. `known`: only if no newer one has replaced that (else StaleFrames)."""
        keys = self._keys(key, "frames", "state", "terminal")
        generation = await self._reset(keys, self._clock.offset_ms, self._live_ms, known)
        if not generation:
            raise StaleFrames
        return generation

    async def append(self, key: StreamKey, generation: int, number: int, frame: bytes) -> bool:
        """Store the writer's frame `number` (from 1) once; False: the list is gone and has to begin again.

        Raises StaleFrames when another writer has reset the stream since, or it has ended.
        """
        keys = self._keys(key, "frames", "state")
        return self._stored(await self._append(keys, self._live_ms, generation, number, frame))

    async def notify(self, key: StreamKey) -> bool:
        """Append a notice to the list there is, or begin one; False: frames were lost. StaleFrames: it has ended."""
        keys = self._keys(key, "frames", "state")
        return self._stored(await self._notify(keys, self._clock.offset_ms, self._live_ms, encode(NOTICE)))

    async def end(self, key: StreamKey, reference: bytes, generation: int = 0) -> None:
        """Append the terminal frame and keep the reference. StaleFrames: it ended before, or `generation` is older."""
        keys = self._keys(key, "frames", "state", "terminal")
        times = self._clock.offset_ms, self._frames_ms, self._reference_ms
        self._stored(await self._end(keys, *times, generation, encode(TERMINAL, reference), reference))

    async def terminal(self, key: StreamKey) -> bytes | None:
        """The terminal reference, once the stream has ended."""
        return (await self.read(key, 0, 0, 1)).terminal

    async def read(self, key: StreamKey, generation: int, start: int, limit: int) -> Page:
        """Up to `limit` frames from `start`; from 0 where the list is of another generation, or shorter than that."""
        keys = self._keys(key, "frames", "state", "terminal")
        return Page(*await self._read(keys, generation, start, limit))

    def _keys(self, key: StreamKey, *parts: str) -> list[str]:
        tag = f"{{{self._prefix}:stream:{key.object_id}:{key.workflow_id}:{key.round}}}"
        return [f"{tag}:{part}" for part in parts]

    @staticmethod
    def _stored(reply: list[bytes]) -> bool:
        if reply[0] in (b"older", b"ended"):
            raise StaleFrames
        return reply[0] == b"ok"
