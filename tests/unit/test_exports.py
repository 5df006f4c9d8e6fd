"""Summaries and transcripts as files."""

import pytest

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
