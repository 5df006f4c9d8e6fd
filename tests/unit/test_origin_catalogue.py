"""The catalogue that is kept in the repository, and what a wrong one is told."""

import re
from pathlib import Path

import pytest

from fixtures import catalogue
from fixtures.broadcast import Broadcast
from fixtures.catalogue import HERE, Show
from fixtures.generate import fingerprint, recordings

MOST_BYTES = 6_000_000


@pytest.fixture(scope="module")
def shows() -> dict[str, Show]:
    return catalogue.load()


def live_s(show: Show) -> float:
    return Broadcast(show, 0).live_s


def test_every_recording_was_read_from_the_script_beside_it():
    spoken = recordings()
    scripts = {path.stem: fingerprint(path) for path in (HERE / "scripts").glob("*.txt")}
    assert scripts == {part: note.script_sha256 for part, note in spoken.items()}


def test_every_recording_has_the_noted_length(shows: dict[str, Show]):
    lengths = {part: note.seconds for part, note in recordings().items()}
    for show in shows.values():
        one_pass_s = sum(lengths[part] for part in show.programme.parts)
        repeats = round(show.timeline.duration_s / one_pass_s)
        assert show.timeline.duration_s == pytest.approx(one_pass_s * repeats, abs=0.1)


def test_the_recordings_are_small():
    assert sum(path.stat().st_size for path in (HERE / "audio").iterdir()) < MOST_BYTES


def test_the_shortest_live_stream_lasts_about_a_minute(shows: dict[str, Show]):
    live = {name: live_s(show) for name, show in shows.items() if show.programme.live}
    assert min(live, key=lambda name: live[name]) == "night-talk"
    assert 50 <= live["night-talk"] <= 65


def test_one_stream_is_an_hour_long_and_over(shows: dict[str, Show]):
    over = [show for show in shows.values() if not show.programme.live]
    assert [show.timeline.duration_s >= 3600 for show in over] == [True]
    assert [live_s(show) for show in over] == [0]


def test_one_stream_loses_segments_and_goes_away(shows: dict[str, Show]):
    lossy = [show for show in shows.values() if show.programme.ends == "gone"]
    assert len(lossy) == 1
    lost = lossy[0].programme.unreadable | lossy[0].programme.skipped
    assert lossy[0].programme.unreadable
    assert lossy[0].programme.skipped
    assert max(lost) < lossy[0].timeline.count - 1


def test_a_transcript_is_the_scripts_in_the_order_they_are_played():
    words = catalogue.transcript("evening-walk")
    assert words.startswith("Let us begin with the harbor")
    assert words.index("kitchen of a busy restaurant") < words.index("old library by the river")


def test_scripts_are_plain_sentences():
    for path in (HERE / "scripts").glob("*.txt"):
        for line in catalogue.script(path.stem).splitlines():
            assert re.fullmatch(r"[A-Z][A-Za-z ,]+\.", line), f"{path.name}: {line}"


def test_any_recording_can_be_an_extra_stream():
    show = catalogue.extra("my-talk", HERE / "audio" / "night-talk.aac")
    assert show.programme.path == "/live/my-talk.m3u8"
    assert show.programme.title == "My Talk"


def test_a_bad_name_for_an_extra_stream_is_refused():
    with pytest.raises(ValueError, match="'My Talk' is no name for a stream"):
        catalogue.extra("My Talk", HERE / "audio" / "night-talk.aac")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "streams.json"),
        ('[{"name": "a", "title": "A", "language": "en", "parts": []}]', "parts"),
        ('[{"name": "a", "title": "A", "language": "en", "parts": ["a"], "colour": 1}]', "colour"),
        ('[{"name": "../a", "title": "A", "language": "en", "parts": ["a"]}]', "name"),
    ],
)
def test_a_wrong_catalogue_is_named(tmp_path: Path, text: str, complaint: str):
    (tmp_path / "streams.json").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        catalogue.load(tmp_path)


def test_a_name_occurs_once(tmp_path: Path):
    entry = '{"name": "a", "title": "A", "language": "en", "parts": ["a"]}'
    (tmp_path / "streams.json").write_text(f"[{entry}, {entry}]")
    with pytest.raises(ValueError, match="each name may occur once"):
        catalogue.load(tmp_path)
