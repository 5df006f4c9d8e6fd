"""Recordings in GridFS, and the packager that writes them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from activities.adapters.decoding import decode_seconds
from activities.adapters.media import NothingRecorded, OggOpusPackager
from activities.adapters.recordings import GridRecordings, new_media_id
from activities.ports import RecordingMissing
from tests.clips import clip, tone


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.fixture
def recordings(db) -> GridRecordings:
    return GridRecordings(db)


CONTENT = bytes(range(256)) * 4000


async def test_a_recording_is_read_back_whole_and_in_ranges(recordings: GridRecordings) -> None:
    media_id = new_media_id("s1", 1)
    assert await recordings.store(media_id, pieces(CONTENT[:300_000], CONTENT[300_000:])) == len(CONTENT)
    assert await recordings.size(media_id) == len(CONTENT)
    assert await recordings.read(media_id) == CONTENT
    for start, end in ((0, 1), (255 * 1024 - 1, 255 * 1024 + 1), (700_001, 900_000), (len(CONTENT) - 5, len(CONTENT))):
        assert b"".join([p async for p in recordings.open_range(media_id, start, end)]) == CONTENT[start:end]


async def test_packaging_again_gets_an_id_of_its_own_and_leaves_readers_of_the_first_alone(recordings) -> None:
    first, second = new_media_id("s1", 1), new_media_id("s1", 1)
    assert first != second
    await recordings.store(first, pieces(CONTENT))
    reading = recordings.open_range(first, 0, len(CONTENT))
    begun = await anext(reading)
    await recordings.store(second, pieces(b"other"))
    assert begun + b"".join([p async for p in reading]) == CONTENT


async def test_a_write_that_breaks_off_leaves_nothing_to_read(recordings: GridRecordings, db) -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield CONTENT
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        await recordings.store("broken", breaking())
    with pytest.raises(RecordingMissing):
        await recordings.size("broken")
    assert await db["recordings.chunks"].count_documents({"files_id": "broken"}) == 0


async def test_a_missing_recording_is_named_and_deleting_twice_is_fine(recordings: GridRecordings) -> None:
    await recordings.store("gone", pieces(b"x"))
    await recordings.delete("gone")
    await recordings.delete("gone")
    for reading in (recordings.read("gone"), recordings.size("gone"), anext(recordings.open_range("gone", 0, 1))):
        with pytest.raises(RecordingMissing, match="gone"):
            await reading


@dataclass
class Stored:
    sequence: int
    start_s: float
    duration_s: float
    data: bytes
    discontinuity: bool = False


async def test_a_session_is_packaged_into_one_playable_recording(recordings: GridRecordings) -> None:
    async def segments_of(session_id: str) -> AsyncIterator[Stored]:
        assert session_id == "live-7"
        for number in (0, 1, 5):
            yield Stored(number, number * 2.0, 2.0, clip("adts", "aac", tone(2.0, 44_100), 44_100))

    packaged = await OggOpusPackager(segments_of, recordings).package("live-7", 3)
    stored = await recordings.read(packaged.media_id)
    assert packaged.media_id.startswith("live-7-3-")
    assert packaged.size_bytes == len(stored)
    assert packaged.duration_s == pytest.approx(12.0, abs=0.15)
    assert decode_seconds(stored) == pytest.approx(packaged.duration_s, abs=0.05)


async def test_a_session_without_audio_stores_nothing(recordings: GridRecordings, db) -> None:
    async def segments_of(session_id: str) -> AsyncIterator[Stored]:
        yield Stored(0, 0.0, 2.0, b"no media")

    with pytest.raises(NothingRecorded):
        await OggOpusPackager(segments_of, recordings).package("live-8", 1)
    assert await db["recordings.files"].count_documents({}) == 0
