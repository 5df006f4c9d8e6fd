"""What a listener reads at a given moment of a broadcast."""

import m3u8
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import playlist
from fixtures.adts import SAMPLES_PER_FRAME
from fixtures.broadcast import GONE_AFTER_S, WINDOW_S, Broadcast
from fixtures.catalogue import Programme, Show
from fixtures.timeline import Timeline

RATE_HZ = 1024 * 10  # ten frames a second, so that a segment of 30 frames lasts exactly three seconds
SEGMENT_S = 3.0
BEGUN_AT = 1_800_000_000.0


def broadcast(segments: int = 20, speed: float = 1, **how) -> Broadcast:
    """A broadcast of `segments` segments, each three seconds long, the last one two."""
    programme = Programme(name="talk", title="A Talk", language="en", parts=["talk"], **how)
    count = segments * 30 - 10
    assert RATE_HZ / SAMPLES_PER_FRAME == 10
    return Broadcast(Show(programme, Timeline((b"frame",) * count, RATE_HZ, 30)), BEGUN_AT, speed)


def listened(on: Broadcast, after_s: float) -> m3u8.M3U8:
    return m3u8.loads(playlist.media(on, BEGUN_AT + after_s, run="mine"))


def numbers(read: m3u8.M3U8) -> list[int]:
    """The segment numbers by counting from the media sequence, as a listener does."""
    first = read.media_sequence or 0
    return list(range(first, first + len(read.segments)))


def length_s(read: m3u8.M3U8) -> float:
    return sum(segment.duration or 0 for segment in read.segments)


def test_a_broadcast_begins_with_its_first_segment():
    read = listened(broadcast(), after_s=0)
    assert numbers(read) == [0]
    assert read.segments[0].uri == "talk/0.ts?run=mine"
    assert read.segments[0].duration == SEGMENT_S
    assert read.segments[0].title == "A Talk"
    assert read.target_duration == 3
    assert not read.is_endlist


def test_the_list_grows_with_the_clock():
    on = broadcast()
    assert [len(listened(on, after_s).segments) for after_s in (0, 2.9, 3, 5.9, 6, 27)] == [1, 1, 2, 2, 3, 10]


def test_the_list_slides_when_it_holds_thirty_seconds():
    read = listened(broadcast(), after_s=33)
    assert numbers(read) == list(range(2, 12))
    assert read.segments[0].uri == "talk/2.ts?run=mine"
    heard_at = read.segments[0].program_date_time
    assert heard_at
    assert heard_at.timestamp() == BEGUN_AT + 2 * SEGMENT_S


def test_the_end_keeps_the_last_window_with_endlist():
    on = broadcast(segments=20)
    last_s = on.live_s
    assert last_s == 19 * SEGMENT_S - 1
    assert not listened(on, last_s - 0.1).is_endlist
    for after_s in (last_s, last_s + 86_400):
        read = listened(on, after_s)
        assert read.is_endlist
        assert numbers(read)[-1] == 19
        assert length_s(read) >= WINDOW_S


def test_a_faster_clock_keeps_thirty_seconds_of_wall_time():
    on = broadcast(segments=100, speed=4)
    read = listened(on, after_s=45)
    assert length_s(read) >= WINDOW_S * 4
    assert on.live_s == (99 * SEGMENT_S - 1) / 4


def test_a_stream_that_is_over_lists_all_of_it():
    read = listened(broadcast(segments=40, live=False), after_s=0)
    assert numbers(read) == list(range(40))
    assert read.is_endlist
    assert read.playlist_type == "vod"
    assert broadcast(live=False).live_s == 0


def test_the_list_jumps_over_segments_that_are_skipped():
    on = broadcast(skipped=frozenset({5, 6}))
    assert numbers(listened(on, 4 * SEGMENT_S)) == [0, 1, 2, 3, 4]
    assert numbers(listened(on, 6 * SEGMENT_S)) == [0, 1, 2, 3, 4]
    assert numbers(listened(on, 7 * SEGMENT_S)) == [7]
    assert numbers(listened(on, 8 * SEGMENT_S)) == [7, 8]


def test_an_unreadable_segment_is_listed_and_not_served():
    on = broadcast(unreadable=frozenset({1}))
    now = BEGUN_AT + 3 * SEGMENT_S
    assert numbers(listened(on, 3 * SEGMENT_S)) == [0, 1, 2, 3]
    assert [on.serves(number, now) for number in range(5)] == [True, False, True, True, False]


def test_a_broadcast_that_goes_away_never_says_that_it_ends():
    on = broadcast(ends="gone")
    end_s = on.live_s
    assert end_s == 19 * SEGMENT_S - 1 + GONE_AFTER_S
    just_before = BEGUN_AT + end_s - 0.1
    assert numbers(listened(on, end_s - 0.1))[-1] == 19
    assert not listened(on, end_s - 0.1).is_endlist
    assert not on.is_gone(just_before)
    assert on.serves(19, just_before)
    assert on.is_gone(BEGUN_AT + end_s)
    assert not on.serves(19, BEGUN_AT + end_s)


def test_a_master_leads_to_a_rendition_of_the_same_run():
    read = m3u8.loads(playlist.master(broadcast(master=True), run="a b&c"))
    assert read.is_variant
    assert read.media[0].type == "AUDIO"
    assert read.media[0].uri == "talk/audio.m3u8?run=a%20b%26c"
    assert read.playlists[0].uri == read.media[0].uri
    assert read.playlists[0].media == [read.media[0]]
    assert read.session_data[0].value == "A Talk"


def test_a_rendition_lies_beside_its_segments():
    read = listened(broadcast(master=True, container="aac"), after_s=0)
    assert read.segments[0].uri == "0.aac?run=mine"


def test_without_a_run_addresses_have_no_query():
    text = playlist.media(broadcast(live=False), BEGUN_AT)
    assert "?" not in text


losses = st.frozensets(st.integers(1, 25), max_size=4)


@given(
    segments=st.integers(1, 40),
    speed=st.sampled_from([1.0, 2.5, 20.0]),
    skipped=losses,
    poll_s=st.floats(0.2, 6),
)
def test_a_patient_listener_gets_all_that_is_listed_once_and_in_order(
    segments: int, speed: float, skipped: frozenset[int], poll_s: float
):
    on = broadcast(segments, speed, skipped=skipped)
    heard: list[int] = []
    for poll in range(int(on.live_s / poll_s) + 2):
        now = BEGUN_AT + poll * poll_s
        listed = on.listed(now)
        assert all(on.serves(number, now) for number in listed)
        assert not heard or listed.start >= heard[0]
        heard += [number for number in listed if not heard or number > heard[-1]]
    # A jump may hide what was published since the last look; without jumps nothing is missed.
    hidden_at_most = 0 if not skipped else int(poll_s * speed / SEGMENT_S + 1) * len(skipped)
    expected = [number for number in range(segments) if number not in skipped]
    assert heard == sorted(set(heard))
    assert len(expected) - len(heard) <= hidden_at_most


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_each_segment_stays_listed_for_thirty_seconds(speed: float):
    on = broadcast(segments=100, speed=speed)
    number = 30
    appears_at = BEGUN_AT + number * SEGMENT_S / speed
    assert number not in on.listed(appears_at - 0.01)
    assert number in on.listed(appears_at)
    assert number in on.listed(appears_at + WINDOW_S - 0.01)
