"""What nobody needs is removed, nothing else is, and a death in the middle only leaves the rest for the next sweep."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from activities.adapters.recordings import UPLOADS, GridRecordings, new_media_id
from activities.adapters.sessions import SessionRecords
from activities.adapters.sweeps import Sweeps
from activities.adapters.transcripts import TranscriptRecords
from activities.payloads import MediaSegment, Packaged, SpeechStatus
from activities.uploads import upload_address
from kernel import Clock
from kernel.mutex import Mutex
from kernel.testing import Crash, crash_at

URL = "https://live.example/{}.m3u8"
POINTS = [
    f"{write}:{moment}"
    for write in ("SessionRecords.remove_segments", "SessionRecords.note_segments_removed", "GridRecordings.delete")
    for moment in ("before", "after")
]


class House:
    """Sessions with segments and recordings, and the sweep that comes through them."""

    def __init__(self, db: Any, redis: Any, prefix: str, clock: Clock) -> None:
        self.db, self.clock = db, clock
        self.sessions = SessionRecords(db, clock)
        self.transcripts = TranscriptRecords(db, clock, provider="asr", model="base")
        self.recordings = GridRecordings(db)
        mutex = Mutex(redis, prefix)
        self.uploads = GridRecordings(db, UPLOADS)
        self.sweeps = Sweeps(self.sessions, self.transcripts, self.recordings, self.uploads, clock, mutex)

    async def recorded(self, name: str, *, transcribed: bool = True) -> tuple[str, str]:
        """A session that is ready: its id and that of its recording. Another packaging died, one in the middle."""
        session = await self.sessions.attach(URL.format(name))
        for number in range(3):
            segment = MediaSegment(number, f"https://live.example/{name}/{number}.ts", 2.0)
            await self.sessions.store_segment(session.session_id, 1, segment, number * 2.0, b"sound")
        await self.store(session.session_id)
        half = await self.store(session.session_id)
        await self.db["recordings.files"].delete_one({"_id": half})
        media_id = await self.store(session.session_id)
        await self.sessions.mark(session.session_id, 1, "ended")
        await self.sessions.attach_media(session.session_id, 1, Packaged(media_id, 6.0, 5))
        await self.sessions.mark_ready(session.session_id, 1)
        transcript = await self.transcripts.ensure(session.session_id)
        if transcribed:
            await self.transcripts.store_window(
                transcript.transcript_id, 1, 0, SpeechStatus("t", "completed"), 6.0, None
            )
            await self.transcripts.mark_completed(transcript.transcript_id, 1)
        return session.session_id, media_id

    async def store(self, session_id: str) -> str:
        media_id = new_media_id(session_id, 1)
        await self.recordings.store(media_id, pieces())
        return media_id

    async def segments_of(self, session_id: str) -> int:
        return len(await self.sessions.captured(session_id, -1))

    async def kept(self) -> set[str]:
        """Ids of recordings of which anything is stored."""
        return set(await self.db["recordings.chunks"].distinct("files_id"))


async def pieces() -> AsyncIterator[bytes]:
    yield b"OggS and so on"


@pytest.fixture
async def house(db: Any, redis: Any, prefix: str, clock: Clock) -> House:
    return House(db, redis, prefix, clock)


async def test_segments_and_lost_recordings_go_after_a_day_and_what_is_referred_to_stays(house: House) -> None:
    session_id, media_id = await house.recorded("talk")
    assert await house.sweeps.run() == 0
    assert (await house.segments_of(session_id), len(await house.kept())) == (3, 3)
    house.clock.advance(timedelta(days=1, minutes=1))
    assert await house.sweeps.run() == 3
    assert (await house.segments_of(session_id), await house.kept()) == (0, {media_id})
    assert await house.recordings.read(media_id) == b"OggS and so on"
    assert await house.sweeps.run() == 0


async def test_segments_stay_while_a_transcript_may_be_cut_from_them(house: House) -> None:
    session_id, _ = await house.recorded("talk", transcribed=False)
    house.clock.advance(timedelta(days=2))
    await house.sweeps.run()
    assert await house.segments_of(session_id) == 3


async def test_a_stream_that_is_still_live_is_left_alone(house: House) -> None:
    session = await house.sessions.attach(URL.format("live"))
    segment = MediaSegment(0, "https://live.example/0.ts", 2.0)
    await house.sessions.store_segment(session.session_id, 1, segment, 0.0, b"sound")
    house.clock.advance(timedelta(days=2))
    assert await house.sweeps.run() == 0
    assert await house.segments_of(session.session_id) == 1


async def test_an_upload_goes_after_a_day_unless_it_is_still_to_be_recorded(house: House) -> None:
    addresses = {name: upload_address("usr_1", name) for name in ("done.mp3", "waiting.mp3", "never.mp3")}
    for address in addresses.values():
        await house.uploads.store(address, pieces())
    done = await house.sessions.attach(addresses["done.mp3"])
    await house.sessions.mark(done.session_id, 1, "ended")
    await house.sessions.mark_ready(done.session_id, 1)
    await house.sessions.attach(addresses["waiting.mp3"])
    assert await house.sweeps.run() == 0
    house.clock.advance(timedelta(days=1, minutes=1))
    assert await house.sweeps.run() == 2
    assert [await house.uploads.holds(address) for address in addresses.values()] == [False, True, False]


@pytest.mark.parametrize("point", POINTS)
async def test_the_next_sweep_finishes_what_a_death_left(point: str, house: House) -> None:
    made = [await house.recorded(name) for name in ("one", "two")]
    house.clock.advance(timedelta(days=2))
    with crash_at(point) as death, pytest.raises(Crash):
        await house.sweeps.run()
    assert death.happened
    await house.sweeps.run()
    assert [await house.segments_of(session_id) for session_id, _ in made] == [0, 0]
    assert await house.kept() == {media_id for _, media_id in made}
