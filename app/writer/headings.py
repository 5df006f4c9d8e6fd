"""Names of subjects, in words that were said: the phrase that marks a stretch off from the rest. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from app.writer.lexicon import COURTESY, DEPENDENT, DETERMINERS, PREPOSITIONS, STOPWORDS, TURNING, VERBS, WIDE
from app.writer.ranking import Ranking
from app.writer.sentences import is_wide
from app.writer.subjects import Subject
from app.writer.terms import stem, terms, words

LONGEST = 48
"""Characters of a heading."""
SHORTEST_CLAUSE, LONGEST_CLAUSE = 4, 18
"""Characters of a Chinese one."""
_PAUSE = re.compile(rf"[，。！？、；：,.!?;:…“”\"()（）—]+|(?<=[{WIDE}])\s+(?=[{WIDE}])")
_CONDITION = re.compile(r"^(?:如果|当|因为|虽然|即使|只要|除非)")
_LEADING = frozenset(
    [
        "a",
        "an",
        "the",
        "this",
        "that",
        "these",
        "those",
        "our",
        "my",
        "your",
        "his",
        "her",
        "its",
        "their",
        "two",
        "three",
        "four",
        "five",
        "six",
    ]
)
_LINKS = frozenset(("of", "by", "for", "in"))


class Phrase(msgspec.Struct, frozen=True):
    """A noun phrase as it was said, and the stems of its own words."""

    text: str
    stems: tuple[str, ...]


def headings(ranking: Ranking, parts: Sequence[Subject]) -> list[str]:
    """One heading for each part; none is made of what another already names."""
    names: list[str] = []
    taken: set[str] = set()
    nouns = _nouns([sentence.text for sentence in ranking.said])
    counts = [Counter(term for at in part.sentences for term in ranking.terms[at]) for part in parts]
    spread = Counter(term for inside in counts for term in inside)
    for part, inside in zip(parts, counts, strict=True):
        weights = {term: count * ranking.rarity(term) / spread[term] for term, count in inside.items()}
        texts = [ranking.said[at].text for at in part.sentences]
        name = _clause(texts, weights, taken) or _phrase(texts, weights, taken, nouns) or _beginning(ranking, part)
        taken.update(terms(name))
        names.append(name[:1].upper() + name[1:])
    return names


def _phrase(texts: Sequence[str], weights: Mapping[str, float], taken: set[str], nouns: set[str]) -> str:
    """The weightiest noun phrase, rather of several words, rather from the beginning."""
    values: dict[str, float] = {}
    for place, text in enumerate(texts):
        for phrase in _phrases(text, nouns):
            own = sum(weights.get(one, 0.0) for one in set(phrase.stems) - taken)
            worth = own / len(phrase.stems) ** 0.4 * (0.65 if len(phrase.stems) == 1 else 1.0) * _early(place)
            if worth and len(phrase.text) <= LONGEST:
                values[phrase.text] = max(values.get(phrase.text, 0.0), worth)
    return max(values, key=lambda text: values[text], default="")


def _early(place: int) -> float:
    return 1 + 1 / (1 + place)


def _phrases(text: str, nouns: set[str]) -> Iterator[Phrase]:
    """Noun phrases, also two of them joined by a small word."""
    for stretch in _PAUSE.split(text):
        said = words(stretch)
        at = 0
        while at < len(said):
            end = _run(said, at, nouns)
            if end > at:
                begin = at - 1 if at and said[at - 1].lower() in _LEADING else at
                yield _named(said, begin, at, end)
                yield from _joined(said, begin, end, nouns)
            at = max(end, at + 1)


def _joined(said: list[str], begin: int, end: int, nouns: set[str]) -> Iterator[Phrase]:
    if end < len(said) and said[end].lower() in _LINKS:
        at = end + 1 + (end + 1 < len(said) and said[end + 1].lower() in DETERMINERS)
        last = _run(said, at, nouns)
        if last > at:
            yield _named(said, begin, begin, last)


def _named(said: list[str], begin: int, first: int, end: int) -> Phrase:
    own = [stem(word.lower()) for word in said[first:end] if word.lower() not in STOPWORDS]
    return Phrase(" ".join(said[begin:end]), tuple(own))


def _run(said: list[str], at: int, nouns: set[str]) -> int:
    """Where a run of up to three content words that begins at `at` ends in a noun; `at` if there is none."""
    end = at
    while end < len(said) and end - at < 3 and said[end].lower() not in STOPWORDS and said[end][0].isalpha():
        end += 1
    while end > at and said[end - 1].lower() not in nouns:
        end -= 1
    return end


def _nouns(texts: Sequence[str]) -> set[str]:
    """Words used as nouns somewhere: after an article or the like, and before a pause, a small word or a verb."""
    found: set[str] = set()
    for text in texts:
        for stretch in _PAUSE.split(text):
            said = [word.lower() for word in words(stretch)]
            for at, word in enumerate(said):
                ends = at + 1 == len(said) or said[at + 1] in STOPWORDS or said[at + 1] in VERBS
                if ends and word not in STOPWORDS and word not in VERBS and _determined(said, at):
                    found.add(word)
    return found


def _determined(said: list[str], at: int) -> bool:
    """Whether an article or preposition is next to the word, or one word away where the word is no likely verb."""
    near = said[max(at - 1, 0) : at] if said[at].endswith(("s", "ed", "ing")) else said[max(at - 2, 0) : at]
    return any(word in DETERMINERS or word in PREPOSITIONS for word in near)


def _clause(texts: Sequence[str], weights: Mapping[str, float], taken: set[str]) -> str:
    """For Chinese: the clause with the weightiest pairs of characters, rather one that turns to a subject."""
    values: dict[str, float] = {}
    for place, text in enumerate(texts):
        for clause in map(str.strip, _PAUSE.split(text) if is_wide(text) else ()):
            own = set(terms(clause)) - taken
            if own and SHORTEST_CLAUSE <= len(clause) <= LONGEST_CLAUSE:
                weight = sum(weights.get(one, 0.0) for one in own) / len(clause) ** 0.6
                values[clause] = weight * _manner(clause) * _early(place)
    return max(values, key=lambda clause: values[clause], default="")


def _manner(clause: str) -> float:
    if COURTESY.search(clause):
        return 0.2
    return 0.4 if _CONDITION.match(clause) or DEPENDENT.match(clause) else 1.6 if TURNING.match(clause) else 1.0


def _beginning(ranking: Ranking, part: Subject) -> str:
    """The first words of the part's weightiest sentence."""
    best = max(part.sentences, key=lambda at: ranking.scores[at])
    said = _PAUSE.split(ranking.said[best].text)[0].strip()
    longest = LONGEST_CLAUSE if is_wide(said) else LONGEST
    return said if len(said) <= longest else said[: longest + 1].rsplit(" ", 1)[0][:longest]
