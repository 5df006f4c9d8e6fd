"""Server-sent events out of bytes that are cut anywhere."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.adapters.events import MAX_LINE_BYTES, EventData, LineTooLong

LINES = st.lists(st.sampled_from(["data: 你好🙂", "data:x", "data", ": ping", "retry: 2000", "id: 7", "event: e", ""]))
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def read(pieces: list[bytes]) -> list[str]:
    events = EventData()
    return [data for piece in pieces for data in events.feed(piece)]


def meant(lines: list[str]) -> list[str]:
    """What the standard says of these lines, with blocks without data left out."""
    found, block = [], []
    for line in lines:
        if not line:
            found += ["\n".join(block)] if block else []
            block = []
        elif line.partition(":")[0] == "data":
            block.append(line.partition(":")[2].removeprefix(" "))
    return found


@settings(deadline=None)
@given(LINES, ENDS, st.integers(min_value=1, max_value=7))
def test_cuts_and_line_ends_change_nothing(lines: list[str], end: bytes, size: int) -> None:
    stream = b"".join(line.encode() + end for line in lines)
    assert read([stream[at : at + size] for at in range(0, len(stream), size)]) == meant(lines)


def test_keep_alives_and_blocks_without_data_are_no_events_between_any_two_bytes() -> None:
    block = b"data: {}\r\n\r\n"
    for noise in (b": ping\n\n", b"retry: 3000\n\n", b"id: 1\n\n\n\n", b"event: ping\n\n", b":\n"):
        assert read([noise, block, noise, noise, block, noise]) == ["{}", "{}"]


def test_an_event_that_the_end_cuts_off_is_dropped() -> None:
    assert read([b"data: 1\n\ndata: 2\n"]) == ["1"]


def test_a_line_without_end_is_bounded() -> None:
    with pytest.raises(LineTooLong):
        read([b"x" * (MAX_LINE_BYTES // 10)] * 20)
