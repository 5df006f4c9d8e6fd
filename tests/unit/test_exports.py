"""Summaries and transcripts as files."""

import io

import av
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from activities.payloads import SpeechSegment
from app.web import exports

LINES = [
    SpeechSegment(0.0, 2.5, "Good evening."),
    SpeechSegment(3599.9996, 3661.25, "An arrow --> and\n\na blank line, <b>tags</b> & all."),
]


def test_markdown_has_its_title_on_top():
    assert exports.markdown("Night Talk", "Body\n") == "# Night Talk\n\nBody\n"


def test_plain_text_has_no_marks_left():
    text = "## Points\n\n* **Leases** end *alone*\n- `fencing_token` stays\n> quoted [link](https://example.org)"
    assert exports.plain("T", text) == "T\n\nPoints\n\n- Leases end alone\n- fencing_token stays\nquoted link\n"


def test_subrip_cues_are_numbered_and_never_broken_by_the_text():
    assert exports.srt(LINES) == (
        "1\n00:00:00,000 --> 00:00:02,500\nGood evening.\n\n"
        "2\n01:00:00,000 --> 01:01:01,250\nAn arrow → and a blank line, <b>tags</b> & all.\n"
    )


def test_webvtt_begins_with_its_name_and_escapes_markup():
    text = exports.vtt(LINES)
    assert text.startswith("WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nGood evening.\n\n")
    assert "&lt;b&gt;tags&lt;/b&gt; &amp; all." in text


def test_a_title_is_one_line():
    assert exports.markdown("Night\n# Talk", "Body").startswith("# Night # Talk\n\nBody")
    assert exports.plain("Night\n\nTalk", "Body").startswith("Night Talk\n\nBody")


def spoken(*lines):
    return [SpeechSegment(*line) for line in lines]


@pytest.mark.parametrize(
    ("lines", "cues"),
    [
        (spoken((1.0, 1.0, "No length.")), [(1000, 1200, "No length.")]),
        (spoken((2.0, 1.0, "Backwards.")), [(2000, 2200, "Backwards.")]),
        (spoken((0.0, 1.0, " \n "), (1.0, 2.0, "a")), [(1000, 2000, "a")]),
        (spoken((0.0, 3.0, "a"), (2.0, 4.0, "b")), [(0, 2000, "a"), (2000, 4000, "b")]),
        (spoken((5.0, 6.0, "b"), (0.0, 1.0, "a")), [(0, 1000, "a"), (5000, 6000, "b")]),
        (spoken((1.0, 2.0, "a"), (1.0, 2.0, "b")), [(1000, 2000, "a"), (1000, 2000, "b")]),
        (spoken((-1.0, 0.5, "a")), [(0, 500, "a")]),
    ],
)
def test_cues_are_in_order_and_each_lasts(lines, cues):
    assert [(cue.start_ms, cue.end_ms, cue.text) for cue in exports.cues_of(lines)] == cues


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40) | st.sampled_from(
    ["00:00:01,000 --> 00:00:02,000", "1\n\n2", "WEBVTT", "NOTE x", "&lt;", "a\r\n\r\nb", "STYLE"]
)
times = st.floats(0, 40_000)


spoken_lines = st.lists(
    st.tuples(times, times, texts).map(lambda line: SpeechSegment(*line)),
    min_size=1,
    max_size=12,
    unique_by=lambda line: round(line.start * 1000),  # the reader takes the same words at the same time for one cue
)


@given(spoken_lines)
def test_a_reader_of_subtitles_finds_each_cue_at_its_time(lines):
    cues = [(cue.start_ms, cue.end_ms - cue.start_ms) for cue in exports.cues_of(lines)]
    assume(cues)
    for written, kind in ((exports.srt(lines), "srt"), (exports.vtt(lines), "webvtt")):
        with av.open(io.BytesIO(written.encode()), format=kind) as read:
            found = [(packet.pts, packet.duration) for packet in read.demux() if packet.pts is not None]
        assert found == cues


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Architecture Night Talk", "Architecture-Night-Talk.md"),
        ("《架构夜谈》 live-7", "架构夜谈-live-7.md"),
        ("../../etc/passwd", "etc-passwd.md"),
        ('a"b\r\nc', "a-b-c.md"),
        ("", "summary.md"),
    ],
)
def test_file_names_are_safe_and_in_the_titles_own_letters(title, name):
    assert exports.file_name(title, "md") == name
