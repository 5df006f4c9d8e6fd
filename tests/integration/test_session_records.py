"""Streams, sessions and segments on a real MongoDB: races, rounds, and nothing twice."""

import asyncio
from typing import Any

import pytest

from activities.adapters.sessions import SessionRecords, title_of
from activities.payloads import Gap, MediaSegment, Packaged
from activities.ports import SourceRefused
from kernel import Clock, StaleRound

URL = "https://live.example/shows/night-talk.m3u8?token=a"


@pytest.fixture
def sessions(db: Any, clock: Clock) -> SessionRecords:
    return SessionRecords(db, clock)


def segment(number: int) -> MediaSegment:
    return MediaSegment(number, f"https://live.example/a/{number}.ts?t={number}", 2.0)


async def test_many_subscribers_at_once_get_one_session(sessions: SessionRecords, db: Any) -> None:
    found = await asyncio.gather(*(sessions.attach(URL) for _ in range(20)))
    assert len({one.session_id for one in found}) == 1
    assert await db["streams"].count_documents({}) == await db["sessions"].count_documents({}) == 1
    assert (found[0].state, found[0].round, found[0].title) == ("scheduled", 1, "night talk")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("HTTPS://Live.Example:443/a.m3u8#t", "https://live.example/a.m3u8", True),
        ("http://live.example:80", "http://live.example/", True),
        ("https://live.example/a.m3u8?run=1", "https://live.example/a.m3u8?run=2", False),
        ("https://live.example/a.m3u8", "http://live.example/a.m3u8", False),
        ("https://live.example/A.m3u8", "https://live.example/a.m3u8", False),
    ],
)
async def test_a_stream_is_its_normalised_address(sessions: SessionRecords, one: str, other: str, same: bool) -> None:
    first, second = await sessions.attach(one), await sessions.attach(other)
    assert (first.stream_id == second.stream_id) is same


async def test_an_address_that_is_none_is_refused_and_nothing_is_left(sessions: SessionRecords, db: Any) -> None:
    with pytest.raises(SourceRefused):
        await sessions.attach("ftp://live.example/a")
    assert await db["streams"].count_documents({}) == 0


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("https://live.example/live/night-talk.m3u8?run=7", "night talk"),
        ("https://live.example/shows/Morning_News/index.m3u8", "Morning News"),
        ("https://live.example/live/stream/master.m3u8", "live.example"),
        ("https://live.example", "live.example"),
        ("https://live.example/%E5%A4%9C%E8%B0%88.m3u8", "夜谈"),
    ],
)
def test_a_title_is_taken_from_the_address_where_none_was_told(url: str, title: str) -> None:
    assert title_of(url) == title


async def test_a_session_moves_forward_and_never_back(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    for state in ("live", "ended", "live"):
        await sessions.mark(session.session_id, 1, state, title="Architecture Night Talk")  # type: ignore[arg-type] # parametrised literal
    found = await sessions.get(session.session_id)
    assert found is not None
    assert (found.state, found.title) == ("ended", "Architecture Night Talk")
    assert found.live_at
    assert found.ended_at


async def test_a_segment_captured_twice_is_kept_once(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    place = (session.session_id, 1)
    await asyncio.gather(*(sessions.store_segment(*place, segment(0), 0.0, b"first") for _ in range(5)))
    await sessions.store_segment(*place, segment(0), 9.0, b"second")
    await sessions.store_segment(*place, segment(1), 2.0, b"next", source_sequence=8001)
    assert [(one.sequence, one.start_s, one.data) async for one in sessions.segments(session.session_id)] == [
        (0, 0.0, b"first"),
        (1, 2.0, b"next"),
    ]
    (known,) = await sessions.captured(session.session_id, 0)
    assert (known.source_sequence, known.address) == (8001, "https://live.example/a/1.ts")


async def test_segments_are_read_in_order_over_many_pages_and_only_those_of_the_session(
    sessions: SessionRecords,
) -> None:
    session, other = await sessions.attach(URL), await sessions.attach(URL + "&b")
    for number in reversed(range(40)):
        await sessions.store_segment(session.session_id, 1, segment(number), number * 2.0, b"x")
    await sessions.store_segment(other.session_id, 1, segment(5), 0.0, b"y")
    assert [one.sequence async for one in sessions.segments(session.session_id)] == list(range(40))
    assert len(await sessions.captured(session.session_id, 37)) == 2
    assert len(await sessions.captured(session.session_id, -100)) == 40


async def test_writes_of_another_round_miss(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    await sessions.mark_unavailable(session.session_id, 1, "gone")
    await sessions.revive(session.session_id, 1)
    late = (session.session_id, 1)
    for write in (
        sessions.mark(*late, "live"),
        sessions.store_segment(*late, segment(0), 0.0, b"x"),
        sessions.store_progress(*late, 2.0, []),
        sessions.note_trouble(*late, "x"),
        sessions.attach_media(*late, Packaged("m", 1.0, 1)),
        sessions.mark_ready(*late),
        sessions.mark_unavailable(*late, "late"),
    ):
        with pytest.raises(StaleRound):
            await write
    assert [one async for one in sessions.segments(session.session_id)] == []


async def test_an_ended_session_takes_no_more_writes_but_the_same_end_again(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    place = (session.session_id, 1)
    await sessions.attach_media(*place, Packaged("media_1", 34.5, 99))
    await sessions.mark_ready(*place)
    await sessions.mark_ready(*place)
    with pytest.raises(StaleRound):
        await sessions.attach_media(*place, Packaged("media_2", 1.0, 1))
    with pytest.raises(StaleRound):
        await sessions.mark_unavailable(*place, "late")
    found = await sessions.get(session.session_id)
    assert found is not None
    assert (found.state, found.media_id, found.duration_s) == ("ready", "media_1", 34.5)


async def test_an_unavailable_session_is_revived_once_and_keeps_what_it_has(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    await sessions.mark(session.session_id, 1, "live")
    await sessions.store_progress(session.session_id, 1, 8.0, [Gap(4.0, 2.0, "not found")])
    await sessions.mark_unavailable(session.session_id, 1, "refused")
    revived = await asyncio.gather(*(sessions.revive(session.session_id, 1) for _ in range(10)))
    assert {one.round for one in revived} == {2}
    assert (revived[0].state, revived[0].error, revived[0].captured_s) == ("scheduled", None, 8.0)
    assert revived[0].gaps == [Gap(4.0, 2.0, "not found")]


async def test_a_session_whose_recording_was_over_is_revived_as_ended(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    await sessions.mark(session.session_id, 1, "ended")
    await sessions.mark_unavailable(session.session_id, 1, "no audio")
    assert (await sessions.revive(session.session_id, 1)).state == "ended"


async def test_a_session_that_is_over_is_followed_by_one_new_one(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    followed = await asyncio.gather(*(sessions.follow(session) for _ in range(10)))
    assert {one.number for one in [*followed, await sessions.attach(URL)]} == {2}
    assert {(one.stream_id, one.state) for one in followed} == {(session.stream_id, "scheduled")}


async def test_trouble_is_said_and_taken_back(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    await sessions.note_trouble(session.session_id, 1, "the address answers 404")
    noted = await sessions.get(session.session_id)
    await sessions.note_trouble(session.session_id, 1, None)
    cleared = await sessions.get(session.session_id)
    assert noted is not None
    assert cleared is not None
    assert (noted.trouble, cleared.trouble) == ("the address answers 404", None)


async def test_a_hint_is_kept_while_the_session_is_open(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    assert await sessions.store_hint(session.session_id, "ended")
    found = await sessions.get(session.session_id)
    assert found is not None
    assert found.hint == "ended"
    await sessions.mark_unavailable(session.session_id, 1, "gone")
    assert not await sessions.store_hint(session.session_id, "ended")


async def test_values_of_strangers_are_never_read_as_expressions(sessions: SessionRecords) -> None:
    session = await sessions.attach(URL)
    await sessions.mark(session.session_id, 1, "live", title="$round")
    await sessions.store_progress(session.session_id, 1, 1.0, [Gap(0, 1, "$$ROOT")])
    found = await sessions.get(session.session_id)
    assert found is not None
    assert (found.title, found.gaps[0].reason) == ("$round", "$$ROOT")
