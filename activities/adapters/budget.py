"""How much a model reads at once, in tokens: counted by its own tokenizer, or by a bound that is safe for all."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from tokenizers import Tokenizer

Count = Callable[[str], int]
ANSWER_SHARE, LONGEST_ANSWER = 0.25, 4_000
"""The part of the context that is left for the answer, and the most tokens that it needs."""
_PIECES = re.compile(r"([A-Za-z\s]+)|([0-9]+)|([^\x00-\x7f]+)|([\x00-\x7f])")


@dataclass(frozen=True, slots=True)
class Budget:
    """The context of a model in tokens, and how they are counted."""

    context_tokens: int
    count: Count

    def parts(self, fixed: str, divisible: str) -> int:
        """In how many parts `divisible` must be sent, `fixed` with each."""
        room = self.context_tokens - min(int(self.context_tokens * ANSWER_SHARE), LONGEST_ANSWER) - self.count(fixed)
        return max(ceil(self.count(divisible) / max(room, 1)), 1)


def counter(tokenizer_file: str) -> Count:
    """Counts with a `tokenizer.json` as Hugging Face has them; without one, a bound. Raises ValueError."""
    if not tokenizer_file:
        return most_tokens
    if not Path(tokenizer_file).is_file():
        raise ValueError(f"there is no file {tokenizer_file}")
    try:
        tokenizer = Tokenizer.from_file(tokenizer_file)
    except Exception as error:  # the library raises its bare base class
        raise ValueError(f"{tokenizer_file} is no tokenizer.json ({error})") from error
    return lambda text: len(tokenizer.encode(text).ids)


def most_tokens(text: str) -> int:
    """More tokens than usual tokenizers make of a text: a third of its letters, half of its digits and of the bytes of
    other scripts, and every other sign."""
    tokens = 0.0
    for letters, digits, wide, _sign in _PIECES.findall(text):
        tokens += len(letters) / 3 if letters else len(digits) / 2 if digits else len(wide.encode()) / 2 if wide else 1
    return ceil(tokens)
