"""What a text speaks of, as terms that can be compared: stems of words, pairs of Chinese characters. Pure."""

import re
from functools import lru_cache

from app.writer.lexicon import STOPWORDS, WIDE

_TOKEN = re.compile(rf"[{WIDE}]+|(?:(?![{WIDE}])[^\W_])+(?:['’](?:(?![{WIDE}])[^\W_])+)*")
_WIDE = re.compile(f"[{WIDE}]")
_PARTICLES = frozenset("的了是在和我你他她它们这那就也都很还要会能到说有没不个一上下着过得地把被对与为之其吗呢吧啊")


def terms(text: str) -> list[str]:
    """The terms of a text in order, with repetitions, without words that say nothing."""
    found: list[str] = []
    for token in words(text):
        found.extend(_pairs(token) if _WIDE.match(token) else _stems(token))
    return found


def words(text: str) -> list[str]:
    """The words of a text as written; a run of Chinese is one."""
    return _TOKEN.findall(text)


def _pairs(run: str) -> list[str]:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)] if len(run) > 1 else [run]
    return [pair for pair in pairs if not _PARTICLES & set(pair)]


def _stems(word: str) -> list[str]:
    plain = word.lower().replace("’", "'")
    return [] if plain in STOPWORDS or len(plain) < 2 else [stem(plain)]


@lru_cache(65_536)
def stem(word: str) -> str:
    """A word without the endings that only grammar asks for; no word itself, only fit for comparison."""
    word = word.removesuffix("'s")
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        word = word[:-2] if word.endswith(("ches", "shes", "xes", "sses")) else word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            word = word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz" else word
            break
    return word.removesuffix("e") if len(word) > 3 else word
