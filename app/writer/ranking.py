"""How much each sentence says for the whole, and which few say it best without saying it twice. Pure.

A group is what is said several times, alike or nearly so, named by the first time. Scores belong to groups, so that
repeating a thing does not make it more important.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from app.writer.centrality import centrality
from app.writer.lexicon import COURTESY, DEPENDENT, WEIGHTY
from app.writer.sentences import Sentence, is_wide
from app.writer.terms import terms

ALIKE = 0.7
"""Share of common terms from which two sentences say the same."""
COMMON = 400
"""A term in more sentences than that no longer helps to find alike ones."""
SHORTLIST = 400
"""Sentences that are weighed against those already chosen."""


class Ranking:
    """Sentences with their terms, groups and scores from 0 to about 1."""

    def __init__(self, said: Sequence[Sentence], title: str = "") -> None:
        self.said = said
        self.terms = [terms(sentence.text) for sentence in said]
        self.groups = _groups(self.terms, [sentence.text for sentence in said])
        firsts = [at for at, group in enumerate(self.groups) if at == group]
        self._count = len(firsts)
        self._spread = Counter(term for at in firsts for term in set(self.terms[at]))
        named = set(terms(title))
        expected = [_expectation(place / len(firsts), named & set(self.terms[at])) for place, at in enumerate(firsts)]
        central = dict(zip(firsts, centrality([self._weights(at) for at in firsts], expected), strict=True))
        worth = (_worth(one, len(set(own))) for one, own in zip(said, self.terms, strict=True))
        self.scores = [central[group] * own for group, own in zip(self.groups, worth, strict=True)]

    def rarity(self, term: str) -> float:
        """Inverse document frequency over what is said, repetitions counted once."""
        return math.log(1 + self._count / self._spread.get(term, 1))

    def shared(self, most: int) -> list[str]:
        """Terms of more than one sentence, those of the most sentences first."""
        return [term for term, count in self._spread.most_common(most) if count > 1]

    def best(
        self, count: int, among: Sequence[int], chosen: Collection[int] = (), scores: Sequence[float] | None = None
    ) -> list[int]:
        """Up to `count` sentences in order, none alike to another or to one of `chosen`."""
        worth = self.scores if scores is None else scores
        used = {self.groups[at] for at in chosen}
        told = {term for at in chosen for term in self.terms[at]}
        picked: list[int] = []
        left = sorted((at for at in among if worth[at] > 0), key=lambda at: -worth[at])[:SHORTLIST]
        while len(picked) < count and (left := [at for at in left if self.groups[at] not in used]):
            best = max(left, key=lambda at: (self._news(at, told, [*chosen, *picked]) * worth[at], -at))
            picked.append(best)
            used.add(self.groups[best])
            told.update(self.terms[best])
        return sorted(picked)

    def _news(self, at: int, told: set[str], taken: Collection[int]) -> float:
        """How much of a sentence is new; one that leans on the sentence before counts less without it."""
        own = set(self.terms[at])
        new = sum(self.rarity(term) for term in own - told) / (sum(self.rarity(term) for term in own) or 1)
        leans = DEPENDENT.match(self.said[at].text) and at - 1 not in taken
        return (0.35 + 0.65 * new) * (0.5 if leans else 1.0)

    def _weights(self, at: int) -> dict[str, float]:
        return {term: count * self.rarity(term) for term, count in Counter(self.terms[at]).items()}


def _groups(all_terms: Sequence[list[str]], texts: Sequence[str]) -> list[int]:
    """For each sentence the first one that says the same."""
    groups: list[int] = []
    exact: dict[str, int] = {}
    holding: dict[str, list[int]] = defaultdict(list)
    sizes = [len(set(own)) for own in all_terms]
    for at, own in enumerate(all_terms):
        plain = texts[at].casefold()
        alike = exact[plain] if plain in exact else _alike(set(own), sizes, holding)
        groups.append(at if alike is None else alike)
        exact.setdefault(plain, groups[at])
        if alike is None:
            for term in set(own):
                holding[term].append(at)
    return groups


def _alike(own: set[str], sizes: Sequence[int], holding: dict[str, list[int]]) -> int | None:
    lists = (holding[term] for term in own if term in holding)
    common = Counter(at for numbers in lists if len(numbers) <= COMMON for at in numbers)
    for at, count in common.most_common(1):
        if count >= ALIKE * max(len(own), sizes[at]):
            return at
    return None


def _expectation(place: float, named: set[str]) -> float:
    """Where one would look first: at the beginning, and where the words of the title are. `place` is from 0 to 1."""
    return 1.0 + math.exp(-8 * place) + 0.5 * min(len(named), 2)


def _worth(sentence: Sentence, content: int) -> float:
    """How well a sentence stands alone, by its length, its manner, and how many terms it has."""
    text = sentence.text
    wide = is_wide(text)
    length = len(text) / 2 if wide else len(text.split())
    worth = 0.4 if length < 5 else 0.75 if length < 8 else 1.0 if length <= 32 else max(32 / length, 0.3)
    worth *= 0.4 if content < (7 if wide else 3) else 1.0
    worth *= (0.15 if length < 14 else 0.5) if COURTESY.search(text) else 1.0
    worth *= 1.3 if WEIGHTY.search(text) else 1.0
    worth *= 0.4 if text.rstrip("\"'”’").endswith(("?", "？")) else 1.0
    return worth * (1.0 if sentence.whole else 0.05)
