"""Thoughts are taken out of a text, however it is cut."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from activities.adapters.thoughts import ThoughtFilter

PARTS = st.lists(st.sampled_from(["<think>", "</think>", "<", "</", "think", ">", "a", "你好🙂", "\n", "<thin", "k>"]))


def filtered(pieces: list[str]) -> str:
    thoughts = ThoughtFilter()
    return "".join(thoughts.feed(piece) for piece in pieces) + thoughts.finish()


def cut(text: str, places: list[int]) -> list[str]:
    marks = sorted({place % (len(text) + 1) for place in places})
    return [text[start:end] for start, end in zip([0, *marks], [*marks, len(text)], strict=True)]


@settings(deadline=None)
@given(PARTS.map("".join), st.lists(st.integers(min_value=0, max_value=1000)))
def test_where_the_text_is_cut_changes_nothing(text: str, places: list[int]) -> None:
    assert filtered(cut(text, places)) == re.sub(r"<think>.*?(</think>|\Z)", "", text, flags=re.DOTALL)


@settings(deadline=None)
@given(PARTS.map("".join))
def test_single_characters_give_the_same_text_as_the_whole(text: str) -> None:
    assert filtered(list(text)) == filtered([text])


def test_text_is_passed_on_as_soon_as_it_cannot_be_a_mark() -> None:
    thoughts = ThoughtFilter()
    assert thoughts.feed("a <") == "a "
    assert thoughts.feed("b") == "<b"
    assert thoughts.feed("<think>hm") == ""
    assert thoughts.inside
