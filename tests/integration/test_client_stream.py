"""The client stream: a reader's text since the last reset is a beginning of what was written."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.errors import StaleFrames
from kernel.frame_lists import FrameLists
from kernel.frames import NOTICE, TERMINAL, TEXT, decode, encode
from kernel.sink import FRAME_BYTES, Sink
from kernel.stream import ClientStreams, Idle, Position, Received, StreamKey, WasReset
from tests.integration.line import Line

KEY = StreamKey("summary:1", "wf_one", 1)
STORY = ["The kettle ", "was singing, ", "电台今晚", " stays on.\n"] * 40
IDLE_S = 0.05


class Reader:
    """Follows a stream as a browser's connection would and keeps what it saw."""

    def __init__(self, streams: ClientStreams, after: Position | None = None) -> None:
        self._items = streams.follow(KEY, after, IDLE_S)
        self._changed = asyncio.Condition()
        self.seen: list[Received | WasReset | Idle] = []
        self.text, self.resets, self.terminal = "", 0, b""
        self.last: Position | None = None
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for item in self._items:
            async with self._changed:
                self._note(item)
                self._changed.notify_all()

    def _note(self, item: Received | WasReset | Idle) -> None:
        self.seen.append(item)
        if isinstance(item, WasReset):
            self.text, self.resets = "", self.resets + 1
        elif isinstance(item, Received):
            self.last = item.position
            self.text += item.payload.decode() if item.kind == TEXT else ""
            self.terminal = item.payload if item.kind == TERMINAL else self.terminal

    async def until(self, seen: Callable[["Reader"], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: seen(self))

    async def has_read(self, text: str) -> None:
        await self.until(lambda reader: reader.text == text)

    async def is_idle(self) -> None:
        self.seen.clear()
        await self.until(lambda reader: Idle() in reader.seen)

    async def ends(self) -> bytes:
        await self._task
        return self.terminal

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._items.aclose()  # type: ignore[attr-defined]  # what async for leaves open is a generator


@pytest.fixture
def streams(redis: Redis, prefix: str, clock: Clock) -> ClientStreams:
    return ClientStreams(redis, prefix, clock)


@pytest.fixture
def lists(redis: Redis, prefix: str, clock: Clock) -> FrameLists:
    return FrameLists(redis, prefix, clock, live_s=7200, frames_s=300, reference_s=86400)


@pytest.fixture
async def line(server_urls: tuple[str, str], redis: Redis) -> AsyncIterator[Line]:
    """A line to the Redis whose keys the `redis` fixture removes."""
    async with Line(server_urls[1]) as line:
        yield line


@asynccontextmanager
async def reading(streams: ClientStreams, after: Position | None = None) -> AsyncIterator[Reader]:
    reader = Reader(streams, after)
    try:
        yield reader
    finally:
        await reader.leave()


async def say(sink: Sink, text: str) -> None:
    await sink.write(text)
    await sink.flush()


async def keys_of(redis: Redis, prefix: str, part: str = "*") -> list[bytes]:
    return [key async for key in redis.scan_iter(match=f"*{prefix}:stream*:{part}")]


# ---- writing ----


async def test_small_writes_are_gathered_into_one_frame(streams: ClientStreams, lists: FrameLists) -> None:
    sink = await streams.open(KEY)
    for character in "gathered":
        await sink.write(character)
    await sink.flush()
    assert (await lists.read(KEY, 0, 0, 10)).frames == [encode(TEXT, b"gathered")]


async def test_large_text_is_cut_into_frames_of_whole_characters(streams: ClientStreams, lists: FrameLists) -> None:
    text = "电台🎙️é" * 900
    await say(await streams.open(KEY), text)
    payloads = [decode(frame).payload for frame in (await lists.read(KEY, 0, 0, 100)).frames]
    assert "".join(payload.decode() for payload in payloads) == text
    assert max(map(len, payloads)) <= FRAME_BYTES


async def test_text_is_sent_without_a_flush(streams: ClientStreams) -> None:
    async with reading(streams) as reader:
        sink = await streams.open(KEY)
        await sink.write("by itself")
        await reader.has_read("by itself")


async def test_text_that_is_no_unicode_does_not_disturb_the_writer(streams: ClientStreams) -> None:
    async with reading(streams) as reader:
        await say(await streams.open(KEY), "a\ud83db")
        await reader.has_read("a?b")


async def test_notice_and_end_come_behind_the_text_before_them(streams: ClientStreams) -> None:
    async with reading(streams) as reader:
        sink = await streams.open(KEY)
        await reader.is_idle()
        await sink.write("one")
        await streams.notify(KEY)
        await sink.write("two")
        await streams.end(KEY, b"completed")
        assert await reader.ends() == b"completed"
        received = [item for item in reader.seen if isinstance(item, Received)]
        assert [item.kind for item in received] == [TEXT, NOTICE, TEXT, TERMINAL]
        assert [item.position.offset for item in received] == [0, 1, 2, 3]


async def test_a_frame_sent_twice_is_stored_once(lists: FrameLists) -> None:
    generation = await lists.reset(KEY)
    for number in (1, 1, 2, 2, 1):
        assert await lists.append(KEY, generation, number, encode(TEXT, b"%d" % number))
    page = await lists.read(KEY, 0, 0, 10)
    assert page.frames == [encode(TEXT, b"1"), encode(TEXT, b"2")]


async def test_an_older_writer_is_refused_and_falls_silent(streams: ClientStreams) -> None:
    older = await streams.open(KEY)
    await say(older, "old ")
    newer = await streams.open(KEY)
    await say(newer, "new ")
    await say(older, "lost")
    await say(newer, "text")
    async with reading(streams) as reader:
        await reader.has_read("new text")


async def test_an_older_writer_does_not_begin_again_over_a_newer_list(lists: FrameLists) -> None:
    older = await lists.reset(KEY)
    await lists.reset(KEY)
    with pytest.raises(StaleFrames):
        await lists.append(KEY, older, 1, encode(TEXT))
    with pytest.raises(StaleFrames):
        await lists.reset(KEY, known=older)
    with pytest.raises(StaleFrames):
        await lists.end(KEY, b"failed", generation=older)


async def test_nothing_is_appended_after_the_end(streams: ClientStreams, lists: FrameLists) -> None:
    generation = await streams.reset(KEY)
    await streams.end(KEY, b"completed")
    with pytest.raises(StaleFrames):
        await lists.append(KEY, generation, 1, encode(TEXT, b"late"))
    await streams.notify(KEY)
    await streams.end(KEY, b"failed")
    assert await streams.terminal(KEY) == b"completed"
    assert (await lists.read(KEY, 0, 0, 10)).frames == [encode(TERMINAL, b"completed")]


async def test_a_generation_never_names_two_lists(
    streams: ClientStreams, redis: Redis, prefix: str, clock: Clock
) -> None:
    generations = [await streams.reset(KEY) for _ in range(5)]
    await redis.delete(*await keys_of(redis, prefix))
    clock.advance(timedelta(milliseconds=len(generations)))  # five resets in one millisecond are not what is tried here
    generations += [await streams.reset(KEY) for _ in range(5)]
    assert generations == sorted(set(generations))


async def test_a_reset_opens_an_ended_stream_again(streams: ClientStreams) -> None:
    await streams.end(KEY, b"failed")
    await say(await streams.open(KEY), "second try")
    assert await streams.terminal(KEY) is None
    async with reading(streams) as reader:
        await reader.has_read("second try")


# ---- reading ----


async def test_a_reader_replays_from_the_first_frame_and_follows(streams: ClientStreams) -> None:
    sink = await streams.open(KEY)
    for text in STORY[:80]:
        await say(sink, text)
    async with reading(streams) as reader:
        await reader.has_read("".join(STORY[:80]))
        for text in STORY[80:]:
            await sink.write(text)
        await reader.has_read("".join(STORY))
        assert reader.resets == 0


async def test_a_long_stream_is_read_page_by_page(streams: ClientStreams, lists: FrameLists) -> None:
    generation = await lists.reset(KEY)
    for number in range(1, 701):
        await lists.append(KEY, generation, number, encode(TEXT, b"%d " % number))
    async with reading(streams) as reader:
        await reader.has_read("".join(f"{number} " for number in range(1, 701)))


async def test_two_readers_take_nothing_from_each_other(streams: ClientStreams) -> None:
    async with reading(streams) as one, reading(streams) as other:
        sink = await streams.open(KEY)
        for text in STORY:
            await sink.write(text)
        await asyncio.gather(one.has_read("".join(STORY)), other.has_read("".join(STORY)))
        await streams.end(KEY, b"completed")
        assert await asyncio.gather(one.ends(), other.ends()) == [b"completed", b"completed"]


async def test_a_reader_may_come_before_the_stream(streams: ClientStreams) -> None:
    async with reading(streams) as reader:
        await reader.is_idle()
        await say(await streams.open(KEY), "here")
        await reader.has_read("here")
        assert reader.resets == 0


async def test_a_reader_after_the_end_gets_the_reference_at_once(streams: ClientStreams) -> None:
    await say(await streams.open(KEY), "all of it")
    await streams.end(KEY, b"completed")
    async with reading(streams) as reader:
        assert await reader.ends() == b"completed"
        assert [type(item) for item in reader.seen] == [Received]


async def test_a_browser_that_returns_goes_on_behind_its_last_event(streams: ClientStreams) -> None:
    sink = await streams.open(KEY)
    for text in ("one ", "two ", "three "):
        await say(sink, text)
    async with reading(streams) as first:
        await first.has_read("one two three ")
        after = first.last
    await say(sink, "four")
    async with reading(streams, after) as again:
        await again.has_read("four")
        assert again.resets == 0


async def test_a_browser_that_returns_after_a_reset_is_told_so(streams: ClientStreams) -> None:
    generation = await streams.reset(KEY)
    await say(await streams.open(KEY), "anew")
    async with reading(streams, Position(generation, 5)) as reader:
        await reader.has_read("anew")
        assert reader.seen[0] == WasReset()


async def test_a_position_beyond_the_list_begins_again(streams: ClientStreams) -> None:
    await say(await streams.open(KEY), "short")
    async with reading(streams) as first:
        await first.has_read("short")
        assert first.last
        beyond = Position(first.last.generation, 99)
    async with reading(streams, beyond) as reader:
        await reader.has_read("short")
        assert reader.resets == 1


async def test_a_reset_in_the_middle_voids_what_was_read(streams: ClientStreams) -> None:
    async with reading(streams) as reader:
        await say(await streams.open(KEY), "a first try that dies")
        await reader.has_read("a first try that dies")
        await say(await streams.open(KEY), "the second")
        await reader.has_read("the second")
        assert reader.resets == 1


async def test_resets_at_any_moment_never_mix_two_tries(streams: ClientStreams) -> None:
    async with reading(streams) as one, reading(streams) as other:
        for attempt in range(12):
            sink = await streams.open(KEY)
            for word in STORY[: 3 * attempt]:
                await say(sink, f"{attempt}:{word}")
        await streams.end(KEY, b"completed")
        await asyncio.gather(one.ends(), other.ends())
        final = "".join(f"11:{word}" for word in STORY[:33])
        for reader in (one, other):
            assert final.startswith(reader.text)


async def test_readers_of_another_round_see_nothing(streams: ClientStreams) -> None:
    await say(await streams.open(StreamKey(KEY.object_id, KEY.workflow_id, 2)), "round two")
    async with reading(streams) as reader:
        await reader.is_idle()
        assert reader.text == ""


async def test_a_frame_of_an_unknown_version_is_refused_and_reading_goes_on(
    streams: ClientStreams, lists: FrameLists
) -> None:
    generation = await lists.reset(KEY)
    await lists.append(KEY, generation, 1, b"\x21of a later release")
    await lists.append(KEY, generation, 2, encode(TEXT, b"known"))
    async with reading(streams) as reader:
        await reader.has_read("known")
        assert Received(Position(generation, 0), NOTICE, b"") in reader.seen


# ---- losing Redis ----


@pytest.mark.parametrize("part", ["frames", "state", "*"])
async def test_a_list_lost_while_it_is_written_begins_again_whole(
    streams: ClientStreams, redis: Redis, prefix: str, part: str
) -> None:
    async with reading(streams) as reader:
        sink = await streams.open(KEY)
        await say(sink, "before ")
        await reader.has_read("before ")
        await redis.delete(*await keys_of(redis, prefix, part))
        await say(sink, "after")
        await reader.has_read("before after")
        assert reader.resets == 1


async def test_a_list_lost_again_and_again_is_whole_in_the_end(
    streams: ClientStreams, redis: Redis, prefix: str
) -> None:
    async with reading(streams) as reader:
        sink = await streams.open(KEY)
        for number, text in enumerate(STORY):
            await sink.write(text)
            if number % 40 == 20:
                await sink.flush()
                await redis.delete(*await keys_of(redis, prefix))
        await sink.flush()
        await reader.has_read("".join(STORY))


async def test_a_notice_does_not_keep_a_writer_from_its_lost_list(
    streams: ClientStreams, redis: Redis, prefix: str
) -> None:
    async with reading(streams) as reader:
        sink = await streams.open(KEY)
        await say(sink, "before ")
        await reader.has_read("before ")
        await redis.delete(*await keys_of(redis, prefix))
        await streams.notify(KEY)
        await say(sink, "after")
        await reader.has_read("before after")


async def test_a_notice_reaches_readers_before_anything_was_written(streams: ClientStreams) -> None:
    async with reading(streams) as reader:
        await streams.notify(KEY)
        await reader.until(lambda reader: any(isinstance(item, Received) for item in reader.seen))
        await say(await streams.open(KEY), "text")
        await reader.has_read("text")
        assert reader.resets == 1


async def test_an_end_without_any_list_still_reaches_readers(streams: ClientStreams, redis: Redis, prefix: str) -> None:
    async with reading(streams) as reader:
        await say(await streams.open(KEY), "text")
        await reader.has_read("text")
        await redis.delete(*await keys_of(redis, prefix))
        await streams.end(KEY, b"completed")
        assert await reader.ends() == b"completed"


async def test_a_reader_ends_by_the_reference_when_the_frames_have_expired(
    streams: ClientStreams, lists: FrameLists, redis: Redis, prefix: str
) -> None:
    await say(await streams.open(KEY), "text")
    generation = (await lists.read(KEY, 0, 0, 1)).generation
    await streams.end(KEY, b"failed")
    await redis.delete(*await keys_of(redis, prefix, "frames"))
    async with reading(streams, Position(generation, 0)) as reader:
        assert await reader.ends() == b"failed"
        assert reader.last == Position(generation, 1)


async def test_an_outage_delays_the_text_and_loses_none(line: Line, prefix: str, clock: Clock) -> None:
    streams = ClientStreams(line.client(), prefix, clock)
    async with reading(streams) as reader:
        sink = await streams.open(KEY)
        await say(sink, "before ")
        await reader.has_read("before ")
        await line.cut()
        await say(sink, "meanwhile ")
        await streams.notify(KEY)
        await reader.is_idle()
        assert await streams.terminal(KEY) is None
        await line.mend()
        await sink.write("after")
        await reader.has_read("before meanwhile after")
        assert reader.resets == 0


async def test_a_stream_opened_during_an_outage_is_sent_whole_afterwards(line: Line, prefix: str, clock: Clock) -> None:
    streams = ClientStreams(line.client(), prefix, clock)
    async with reading(streams) as reader:
        await say(await streams.open(KEY), "the try before")
        await reader.has_read("the try before")
        await line.cut()
        sink = await streams.open(KEY)
        await say(sink, "this ")
        await line.mend()
        await sink.write("try")
        await reader.has_read("this try")


async def test_an_outage_and_a_loss_at_once_reset_the_reader(
    line: Line, redis: Redis, prefix: str, clock: Clock
) -> None:
    streams = ClientStreams(line.client(), prefix, clock)
    async with reading(streams) as reader:
        sink = await streams.open(KEY)
        await say(sink, "before ")
        await reader.has_read("before ")
        await line.cut()
        await redis.delete(*await keys_of(redis, prefix))
        await sink.write("after")
        await line.mend()
        await reader.has_read("before after")
        assert reader.resets == 1


async def test_no_method_raises_while_redis_is_away(line: Line, prefix: str, clock: Clock) -> None:
    streams = ClientStreams(line.client(), prefix, clock)
    await line.cut()
    assert await streams.reset(KEY) == 0
    await say(await streams.open(KEY), "text")
    calls: list[Coroutine[None, None, object]] = [
        streams.notify(KEY),
        streams.end(KEY, b"x"),
        streams.terminal(KEY),
    ]
    assert [await call for call in calls] == [None, None, None]


# ---- how long it is kept ----


async def test_a_live_stream_is_kept_for_hours_and_an_ended_one_shorter(
    streams: ClientStreams, redis: Redis, prefix: str, clock: Clock
) -> None:
    await say(await streams.open(KEY), "text")
    live = {key.rsplit(b":")[-1]: await redis.pttl(key) for key in await keys_of(redis, prefix)}
    assert live == {b"frames": near(timedelta(hours=2)), b"state": near(timedelta(hours=2))}
    await streams.end(KEY, b"completed")
    ended = {key.rsplit(b":")[-1]: await redis.pttl(key) for key in await keys_of(redis, prefix)}
    day, minutes = near(timedelta(hours=24)), near(timedelta(minutes=5))
    assert ended == {b"frames": minutes, b"state": day, b"terminal": day}


def near(kept: timedelta) -> object:
    return pytest.approx(kept.total_seconds() * 1000, abs=60_000)
