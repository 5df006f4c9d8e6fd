"""Byte ranges as browsers and download managers ask for them."""

import pytest

from app.web.ranges import Unsatisfiable, parse_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-", (0, 100)),
        ("bytes=0-0", (0, 1)),
        ("bytes=10-19", (10, 20)),
        ("bytes=90-1000", (90, 100)),
        ("bytes=-10", (90, 100)),
        ("bytes=-1000", (0, 100)),
        (" bytes=5-5 ", (5, 6)),
    ],
)
def test_one_range_is_honoured(header, expected):
    assert parse_range(header, 100) == expected


@pytest.mark.parametrize("header", [None, "", "bytes=-", "bytes=5-4", "bytes=0-1,5-6", "lines=1-2", "bytes=a-b"])
def test_anything_else_is_answered_by_the_whole(header):
    assert parse_range(header, 100) is None


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_a_range_beyond_the_end_cannot_be_satisfied(header):
    with pytest.raises(Unsatisfiable):
        parse_range(header, 100)
