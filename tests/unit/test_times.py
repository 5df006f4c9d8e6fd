"""Times in a text that is streamed: those of the talk, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.payloads import SpeechSegment
from activities.times import SpokenTimes, TimeFilter, stamp

SPOKEN = SpokenTimes([SpeechSegment(start, start + 8, "words") for start in (0.4, 10.0, 62.5, 3725.0)])


def filtered(*pieces: str) -> str:
    times = TimeFilter(SPOKEN)
    return "".join([*(times.feed(piece) for piece in pieces), times.finish()])


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("## [00:01:02] Leases", "## [00:01:02] Leases"),
        ("## [00:01:40] Leases", "## [00:01:02] Leases"),
        ("## [1:40]Leases", "## [00:01:02]Leases"),
        ("## [00:00:07,250] Queues", "## [00:00:00] Queues"),
        ("## [09:00:00] Invented", "## Invented"),
        ("[00:00:10] [01:02:04]", "[00:00:10] [00:01:02]"),
        (
            "At 20:30 tonight, a ratio of [16:9], [1] and [link](x)",
            "At 20:30 tonight, a ratio of [16:9], [1] and [link](x)",
        ),
        ("an open [00:0", "an open [00:0"),
    ],
)
def test_a_time_in_brackets_is_that_of_what_was_being_said(written: str, text: str) -> None:
    assert filtered(written) == text


def test_where_nothing_was_said_no_time_is_left() -> None:
    times = TimeFilter(SpokenTimes([]))
    assert times.feed("[00:00:10] a") + times.finish() == "a"


@given(
    st.lists(st.sampled_from(["[", "]", "00", ":", "01:", "40", " ", "x", "[00:01:40] ", "[09:00:00]", "\n"])),
    st.data(),
)
def test_pieces_cut_anywhere_give_the_same_text(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    parts = [text[first:last] for first, last in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert filtered(*parts) == filtered(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "00:00:00"), (59.99, "00:00:59"), (360_000, "100:00:00"), (-1, "00:00:00")]
)
def test_times_are_rounded_down(seconds: float, text: str) -> None:
    assert stamp(seconds) == text
