"""What one reader of a client stream has seen."""

from hypothesis import given
from hypothesis import strategies as st

from kernel.frame_lists import Page, Position
from kernel.frames import NOTICE, TERMINAL, TEXT, encode
from kernel.sink import cut
from kernel.stream import Cursor, Received, WasReset

texts = st.lists(st.text(min_size=1, max_size=5), max_size=20)


def page_of(texts: list[str], generation: int, start: int, limit: int, *, ended: bool = False) -> Page:
    """What Redis would answer for a list of these texts."""
    frames = [encode(TEXT, text.encode()) for text in texts] + [encode(TERMINAL, b"done")] * ended
    return Page(generation, start, len(frames), b"done" if ended else None, frames[start : start + limit])


def text_of(items: list[Received | WasReset]) -> str:
    return b"".join(item.payload for item in items if isinstance(item, Received) and item.kind == TEXT).decode()


@given(texts, st.integers(1, 7))
def test_pages_of_any_size_bring_each_frame_once_and_in_order(texts: list[str], limit: int) -> None:
    cursor, items = Cursor(), list[Received | WasReset]()
    while cursor.next < len(texts):
        items += cursor.take(page_of(texts, 9, cursor.next, limit))
    assert [item.position for item in items if isinstance(item, Received)] == [
        Position(9, n) for n in range(len(texts))
    ]
    assert text_of(items) == "".join(texts)


@given(texts, st.data())
def test_a_reader_goes_on_behind_its_position(texts: list[str], data: st.DataObject) -> None:
    seen = data.draw(st.integers(0, len(texts)))
    cursor = Cursor(Position(9, seen - 1))
    items = list(cursor.take(page_of(texts, 9, cursor.next, 100)))
    assert text_of(items) == "".join(texts[seen:])
    assert WasReset() not in items


def test_another_generation_voids_what_was_received() -> None:
    cursor = Cursor(Position(8, 3))
    assert list(cursor.take(page_of(["new"], 9, 0, 100))) == [WasReset(), Received(Position(9, 0), TEXT, b"new")]


def test_a_list_shorter_than_the_position_begins_again() -> None:
    cursor = Cursor(Position(9, 40))
    assert list(cursor.take(page_of(["all"], 9, 0, 100))) == [WasReset(), Received(Position(9, 0), TEXT, b"all")]


def test_a_stream_that_is_not_there_brings_nothing_and_voids_nothing() -> None:
    cursor = Cursor(Position(9, 1))
    assert list(cursor.take(Page(0, 0, 0, None, []))) == []
    assert (cursor.generation, cursor.next) == (9, 2)


def test_a_reader_in_the_middle_reads_on_to_the_terminal_frame() -> None:
    cursor = Cursor()
    list(cursor.take(page_of(["a"], 9, 0, 100)))
    items = list(cursor.take(page_of(["a", "b"], 9, 1, 100, ended=True)))
    assert items == [Received(Position(9, 1), TEXT, b"b"), Received(Position(9, 2), TERMINAL, b"done")]
    assert cursor.finished


def test_a_reader_after_the_end_gets_the_reference_at_once() -> None:
    cursor = Cursor()
    assert list(cursor.take(page_of(["a", "b"], 9, 0, 100, ended=True))) == [
        Received(Position(9, 2), TERMINAL, b"done")
    ]
    assert cursor.finished


def test_the_reference_ends_a_reader_whose_frames_have_expired() -> None:
    cursor = Cursor()
    list(cursor.take(page_of(["a"], 9, 0, 100)))
    assert list(cursor.take(Page(9, 1, 3, b"done", []))) == [Received(Position(9, 2), TERMINAL, b"done")]


def test_a_frame_of_an_unknown_version_becomes_a_notice() -> None:
    items = list(Cursor().take(Page(9, 0, 1, None, [b"\x21from the future"])))
    assert items == [Received(Position(9, 0), NOTICE, b"")]


@given(st.text(max_size=400), st.integers(4, 64))
def test_text_is_cut_between_characters(text: str, limit: int) -> None:
    pieces = cut(text.encode(), limit)
    assert "".join(piece.decode() for piece in pieces) == text
    assert all(0 < len(piece) <= limit for piece in pieces)


def test_a_position_is_read_from_what_a_browser_sends_and_from_nothing_else() -> None:
    assert Position.parse(str(Position(1796097784065, 12))) == Position(1796097784065, 12)
    assert [Position.parse(text) for text in ("", "7", "-1-2", "1-2-3", "1-x", "9" * 400 + "-1")] == [None] * 6
