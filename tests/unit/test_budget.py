"""How many parts a text is sent in: counted, or bounded from above."""

import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from activities.adapters.budget import Budget, counter, most_tokens


@pytest.mark.parametrize(("context", "parts"), [(10_000, 1), (1_500, 1), (1_300, 2), (400, 5)])
def test_the_prompt_and_room_for_the_answer_are_left_out_of_the_context(context: int, parts: int) -> None:
    assert Budget(context, len).parts("x" * 100, "y" * 1_000) == parts


def test_a_context_that_the_instructions_fill_is_one_part_for_each_token() -> None:
    assert Budget(500, len).parts("x" * 500, "y" * 20) == 20


def test_the_bound_is_above_what_words_and_characters_can_be() -> None:
    english = "[00:00:05] Good evening, and welcome to the harbour."
    assert most_tokens(english) >= len(re.findall(r"\w+|[^\w\s]", english))
    assert most_tokens("你好，世界") >= 5
    assert most_tokens("") == 0


def test_a_models_own_tokenizer_is_counted_with(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"good": 0, "evening": 1, "?": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert counter(str(tmp_path / "tokenizer.json"))("good evening good harbour") == 4


@pytest.mark.parametrize(("content", "words"), [(None, "there is no file"), ("{}", "is no tokenizer.json")])
def test_a_tokenizer_that_is_none_is_named(tmp_path: Path, content: str | None, words: str) -> None:
    file = tmp_path / "tokenizer.json"
    if content:
        file.write_text(content)
    with pytest.raises(ValueError, match=words):
        counter(str(file))
