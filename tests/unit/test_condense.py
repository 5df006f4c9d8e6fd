"""A talk that is too long: cut at pauses, read once, and brought down to what a model can read."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.payloads import Gap, Notes, SpeechSegment, WriteRequest
from activities.summary.condense import Plan, Unsplittable, split

READS = 400
"""Characters that the model of these tests reads at once."""


def talk(lines: int, *, gaps: Any = ()) -> WriteRequest:
    said = [SpeechSegment(at * 10.0, at * 10.0 + 8.0, f"sentence number {at} of the talk") for at in range(lines)]
    return WriteRequest("Talk", "chapters", "en", said, list(gaps))


def size(request: WriteRequest) -> int:
    return sum(len(segment.text) for segment in request.segments)


def parts(request: WriteRequest) -> int:
    return max(-(-size(request) // READS), 1)


def noted(request: WriteRequest) -> Notes:
    """Every fourth line, in half of its words."""
    kept = request.segments[::4]
    lines = [SpeechSegment(one.start, one.end, one.text[: len(one.text) // 2]) for one in kept]
    return Notes(request.segments[0].start, request.segments[-1].end, lines)


def read(asked: WriteRequest, known: dict[str, Notes], *, model: str = "m") -> list[WriteRequest]:
    """All requests that are sent until the summary has been written, that one the last."""
    sent: list[WriteRequest] = []
    while True:
        task = Plan(asked, model, parts, known).next()
        assert task.key not in known
        sent.append(task.request)
        if task.request.kind == "summary":
            return sent
        known[task.key] = noted(task.request)


def test_a_talk_that_fits_is_written_of_as_it_is() -> None:
    assert read(talk(10), {}) == [talk(10)]


@pytest.mark.parametrize("lines", [20, 100, 1000])
def test_every_line_is_read_in_one_section_and_no_request_is_longer_than_the_model_reads(lines: int) -> None:
    asked = talk(lines)
    *sections, last = read(asked, {})
    first_level = [one for section in sections if not section.condensed for one in section.segments]
    assert first_level == asked.segments
    assert all(parts(request) == 1 for request in [*sections, last])
    assert (last.kind, last.condensed, last.style) == ("summary", True, "chapters")
    assert {one.start for one in last.segments} <= {one.start for one in asked.segments}


@pytest.mark.parametrize("paid", [0, 1, 5, 11])
def test_what_another_worker_has_read_is_not_read_again(paid: int) -> None:
    known: dict[str, Notes] = {}
    whole = read(talk(100), known)
    some = dict(list(known.items())[:paid])
    assert read(talk(100), some) == whole[paid:]


def test_notes_of_another_model_or_style_are_not_taken() -> None:
    known: dict[str, Notes] = {}
    read(talk(100), known)
    assert len(read(talk(100), dict(known), model="other")) == len(known) + 1


def test_what_the_model_calls_too_long_is_read_in_halves() -> None:
    asked, known = talk(10), dict[str, Notes]()
    task = Plan(asked, "m", parts, known).next()
    known[task.key] = Notes(0.0, 98.0, too_long=True)
    halves = read(asked, known)
    assert [request.kind for request in halves] == ["notes", "notes", "summary"]
    assert [one for half in halves[:2] for one in half.segments] == asked.segments


def test_one_line_that_is_too_long_cannot_be_split() -> None:
    asked, known = talk(2), dict[str, Notes]()
    for _ in range(2):
        task = Plan(asked, "m", parts, known).next()
        known[task.key] = Notes(0.0, 0.0, too_long=True)
    with pytest.raises(Unsplittable):
        Plan(asked, "m", parts, known).next()


def test_sections_end_at_the_longest_pause_near_their_share() -> None:
    said = [SpeechSegment(at * 10.0, at * 10.0 + (4.0 if at == 10 else 9.0), "x" * 30) for at in range(24)]
    first, second = split(WriteRequest("T", "brief", "en", said), 2)
    assert (first.segments[-1], second.segments[0]) == (said[10], said[11])


def test_a_gap_is_told_with_the_section_that_it_lies_in() -> None:
    between = [Gap(at * 10.0 + 8.5, 1.5, "not found") for at in range(40)]  # after each line, so between sections too
    asked = talk(40, gaps=[Gap(-1.0, 0.5, "before the first word"), *between])
    assert [gap for section in split(asked, 4) for gap in section.gaps] == asked.gaps


@given(st.lists(st.text(max_size=80), min_size=2, max_size=60), st.integers(2, 80))
def test_sections_are_the_talk_in_order_and_none_is_empty(texts: list[str], count: int) -> None:
    said = [SpeechSegment(at * 2.0, at * 2.0 + 1.5, text) for at, text in enumerate(texts)]
    sections = split(WriteRequest("T", "brief", "en", said), count)
    assert [one for section in sections for one in section.segments] == said
    assert len(sections) == min(count, len(said))
    assert all(a.segments[-1].end <= b.segments[0].start for a, b in pairwise(sections))
