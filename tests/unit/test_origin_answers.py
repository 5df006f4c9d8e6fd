"""The origin's answers, with a clock set by hand."""

from pathlib import Path

import m3u8
import msgspec
import pytest

from fixtures.broadcast import GONE_AFTER_S
from fixtures.catalogue import Programme, Show
from fixtures.origin import REST_S, Origin
from fixtures.serving import Answer
from fixtures.starts import Starts
from fixtures.timeline import Timeline

RATE_HZ = 1024 * 10
LIVE_S = 57.0  # twenty segments of three seconds; the first is there at once


class Station:
    """An origin whose clock stands still until it is moved."""

    def __init__(self, state: Path | None = None) -> None:
        self.now = 1_800_000_000.0
        shows = [
            show("talk"),
            show("notes", master=True, container="aac", ends="gone"),
            show("archive", container="aac", live=False),
        ]
        self.origin = Origin({each.programme.name: each for each in shows}, Starts(state), clock=lambda: self.now)

    def get(self, path: str, run: str = "") -> Answer:
        return self.origin.answer(path, run)

    def segments(self, path: str, run: str = "") -> list[str]:
        answer = self.get(path, run)
        assert answer.status == 200
        return [segment.uri or "" for segment in m3u8.loads(answer.body.decode()).segments]


def show(name: str, **how) -> Show:
    programme = Programme(name=name, title=name.title(), language="en", parts=[name], **how)
    return Show(programme, Timeline((b"\xff\xf1frame",) * 600, RATE_HZ, 30))


@pytest.fixture
def station() -> Station:
    return Station()


def test_the_streams_are_listed_with_the_time_they_stay_live(station: Station):
    listed = msgspec.json.decode(station.get("/streams.json").body)
    assert listed == [
        {"title": "Talk", "path": "/live/talk.m3u8", "language": "en", "live_seconds": LIVE_S},
        {"title": "Notes", "path": "/live/notes.m3u8", "language": "en", "live_seconds": LIVE_S + GONE_AFTER_S},
        {"title": "Archive", "path": "/live/archive.m3u8", "language": "en", "live_seconds": 0.0},
    ]


def test_health_is_ok(station: Station):
    assert msgspec.json.decode(station.get("/healthz").body) == {"status": "ok"}


def test_each_run_begins_at_its_own_first_request(station: Station):
    assert len(station.segments("/live/talk.m3u8", "first")) == 1
    station.now += 12
    assert len(station.segments("/live/talk.m3u8", "first")) == 5
    assert station.segments("/live/talk.m3u8", "second") == ["talk/0.ts?run=second"]


def test_a_run_that_is_over_stays_over(station: Station):
    station.segments("/live/talk.m3u8", "mine")
    station.now += LIVE_S + 100 * REST_S
    assert b"#EXT-X-ENDLIST" in station.get("/live/talk.m3u8", "mine").body


def test_a_run_outlives_a_restart(tmp_path: Path):
    before = Station(tmp_path)
    before.segments("/live/talk.m3u8", "mine")
    after = Station(tmp_path)
    after.now += 12
    assert len(after.segments("/live/talk.m3u8", "mine")) == 5


def test_listeners_without_a_run_share_one_broadcast(station: Station):
    first = station.segments("/live/talk.m3u8")
    station.now += 12
    later = station.segments("/live/talk.m3u8")
    assert len(later) == 5
    assert later[0] == first[0]
    assert "?run=air-" in first[0]


def test_a_new_broadcast_goes_on_air_after_the_rest(station: Station):
    first = station.segments("/live/talk.m3u8")
    station.now += LIVE_S + REST_S - 1
    assert b"#EXT-X-ENDLIST" in station.get("/live/talk.m3u8").body
    station.now += 1
    fresh = station.segments("/live/talk.m3u8")
    assert len(fresh) == 1
    assert fresh != first


def test_the_broadcast_on_air_outlives_a_restart(tmp_path: Path):
    first = Station(tmp_path).segments("/live/talk.m3u8")
    after = Station(tmp_path)
    after.now += 12
    assert after.segments("/live/talk.m3u8")[0] == first[0]


def test_a_master_and_its_rendition_belong_to_one_broadcast(station: Station):
    master = m3u8.loads(station.get("/live/notes.m3u8").body.decode())
    address, _, query = (master.media[0].uri or "").partition("?run=")
    station.now += 3
    assert station.segments(f"/live/{address}", query) == [f"0.aac?run={query}", f"1.aac?run={query}"]


def test_every_address_of_a_broadcast_that_went_away_is_missing(station: Station):
    for path in ("/live/notes.m3u8", "/live/notes/audio.m3u8", "/live/notes/0.aac"):
        assert station.get(path, "mine").status == 200
    station.now += LIVE_S + GONE_AFTER_S
    for path in ("/live/notes.m3u8", "/live/notes/audio.m3u8", "/live/notes/0.aac"):
        assert station.get(path, "mine").status == 404


def test_a_segment_answers_from_its_publication_on(station: Station):
    station.segments("/live/notes.m3u8", "mine")
    assert station.get("/live/notes/1.aac", "mine").status == 404
    station.now += 3
    answer = station.get("/live/notes/1.aac", "mine")
    assert (answer.status, answer.content_type) == (200, "audio/aac")
    station.now += 45
    assert station.get("/live/notes/1.aac", "mine").body == answer.body


def test_a_segment_does_not_begin_a_broadcast(station: Station):
    assert station.get("/live/talk/0.ts", "mine").status == 404
    station.now += 12
    assert station.segments("/live/talk.m3u8", "mine") == ["talk/0.ts?run=mine"]


def test_a_stream_that_is_over_needs_no_broadcast(station: Station):
    assert len(station.segments("/live/archive.m3u8")) == 20
    assert station.get("/live/archive/19.aac").status == 200
    assert station.get("/live/archive/20.aac").status == 404


@pytest.mark.parametrize(
    "path", ["/", "/live/", "/live/nobody.m3u8", "/live/talk/audio.m3u8", "/live/talk/0.aac", "/live/../talk.m3u8"]
)
def test_unknown_addresses_are_missing(station: Station, path: str):
    answer = station.get(path)
    assert answer.status == 404
    assert "detail" in msgspec.json.decode(answer.body)


def test_a_run_has_a_bounded_name(station: Station):
    assert station.get("/live/talk.m3u8", "x" * 200).status == 200
    assert station.get("/live/talk.m3u8", "x" * 201).status == 400


def test_a_damaged_list_of_starts_is_named(tmp_path: Path):
    (tmp_path / "broadcasts.json").write_text('{"starts": [')
    with pytest.raises(ValueError, match=r"broadcasts\.json is not a list of broadcasts"):
        Starts(tmp_path)


def test_a_start_is_given_once(tmp_path: Path):
    starts = Starts(tmp_path)
    assert [starts.begin("talk", "mine", now) for now in (10.0, 20.0)] == [10.0, 10.0]
    assert Starts(tmp_path).of("talk", "mine") == 10.0
    assert [path.name for path in tmp_path.iterdir()] == ["broadcasts.json"]
