"""Where the talk turns to another subject. Pure.

The sentences are divided into runs so that each is as near as possible to the mean of its run: the best division there
is, found by dynamic programming over their terms. A run more must make up for its price.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.writer.lexicon import DEPENDENT, TURNING
from app.writer.ranking import Ranking

SHORTEST = 3
"""Sentences of a subject, at least."""
PRICE = 2.8
"""What one more subject must gain; a sentence that is wholly of its subject counts 1."""
TURN, LEAN = 1.0, -0.6
"""For beginning with a sentence that announces a turn, or with one that leans on the sentence before."""
UNITS = 500
"""More sentences than that are taken several at a time."""
TERMS = 1500
"""Terms that count: those of the most sentences."""
AROUND = 13
"""Sentences among which most must be repetitions for a stretch to be one."""

Floats = NDArray[np.float64]


class Subject(msgspec.Struct, frozen=True):
    """A stretch of the talk by its sentences' numbers. `repeats`: almost all of it was said before."""

    sentences: range
    repeats: bool = False


def subjects(ranking: Ranking) -> list[Subject]:
    """The whole talk, stretch by stretch, in order and without gaps."""
    stretches = _stretches(ranking)
    fresh = sum(len(one.sentences) for one in stretches if not one.repeats)
    found: list[Subject] = []
    for one in stretches:
        if one.repeats:
            found.append(one)
        else:
            most = max(most_subjects(fresh) * len(one.sentences) // fresh, 1)
            found += [Subject(part) for part in _parts(ranking, one.sentences, most)]
    return found


def most_subjects(count: int) -> int:
    """How many a reader can follow in a talk of so many sentences: more in a longer one, but not without end."""
    return min(8 + count // 150, 24)


def _stretches(ranking: Ranking) -> list[Subject]:
    """What is new and what was said before, by the majority around each sentence."""
    said_before = np.array([group < at for at, group in enumerate(ranking.groups)], float)
    window = np.ones(min(AROUND, len(said_before)) or 1)
    around = np.convolve(said_before, window, "same") / np.convolve(np.ones(len(said_before)), window, "same")
    found: list[Subject] = []
    for repeats, run in groupby(range(len(said_before)), key=lambda at: bool(around[at] > 0.5)):
        numbers = list(run)
        if found and (len(numbers) < AROUND or found[-1].repeats == repeats):
            found[-1] = Subject(range(found[-1].sentences.start, numbers[-1] + 1), found[-1].repeats)
        else:
            found.append(Subject(range(numbers[0], numbers[-1] + 1), repeats))
    return found


def _parts(ranking: Ranking, stretch: range, most: int) -> list[range]:
    """A stretch in at most `most` parts; a talk of some length has two at least."""
    each = -(-len(stretch) // UNITS)
    shortest = -(-SHORTEST // each)
    rows = _vectors(ranking, stretch, each)
    most = min(most, len(rows) // shortest)
    least = min(2 if len(stretch) >= 4 * SHORTEST else 1, most)
    if most < 2:
        return [stretch]
    borders = _division(rows, _bonuses(ranking, stretch, each), (least, most), shortest)
    at = [min(stretch.start + border * each, stretch.stop) for border in borders]
    return [range(first, last) for first, last in pairwise(at)]


def _vectors(ranking: Ranking, stretch: range, each: int) -> Floats:
    """One row of length 1 for every `each` sentences; only terms said in several places hold a talk together."""
    numbers = {term: at for at, term in enumerate(ranking.shared(TERMS))}
    rows = np.zeros((-(-len(stretch) // each), max(len(numbers), 1)))
    for at in stretch:
        for term in ranking.terms[at]:
            if term in numbers:
                rows[(at - stretch.start) // each, numbers[term]] += ranking.rarity(term)
    rows = _smoothed(rows)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _smoothed(rows: Floats) -> Floats:
    """Sentences are short: a little of their neighbours tells what they are about."""
    softened = rows.copy()
    softened[1:] += 0.5 * rows[:-1]
    softened[:-1] += 0.5 * rows[1:]
    return softened


def _bonuses(ranking: Ranking, stretch: range, each: int) -> Floats:
    """For each unit, and the end: how well a subject may begin with it."""
    texts = [ranking.said[at].text for at in stretch[::each]]
    worth = [TURN if TURNING.match(text) else LEAN if DEPENDENT.match(text) else 0.0 for text in texts]
    return np.array([0.0, *worth[1:], 0.0])


def _division(rows: Floats, bonuses: Floats, allowed: tuple[int, int], shortest: int) -> Sequence[int]:
    """Borders of the best division of `rows` into as many runs as pay, within what is allowed."""
    count, (least, most) = len(rows), allowed
    sums = np.vstack([np.zeros(rows.shape[1]), np.cumsum(rows, axis=0)])
    gram = sums @ sums.T
    squares = np.diag(gram)
    best = np.full((most + 1, count + 1), -np.inf)
    origin = np.zeros((most + 1, count + 1), np.intp)
    best[0, 0] = 0.0
    for end in range(shortest, count + 1):
        begins = np.arange(end - shortest + 1)
        gained = (squares[end] + squares[begins] - 2 * gram[end, begins]) / (end - begins) + bonuses[begins]
        totals = best[:most, : len(begins)] + gained
        origin[1:, end] = totals.argmax(axis=1)
        best[1:, end] = totals.max(axis=1)
    parts = least + int((best[least:, count] - PRICE * np.arange(least, most + 1)).argmax())
    borders = [count]
    for part in range(parts, 0, -1):
        borders.append(int(origin[part, borders[-1]]))
    return borders[::-1]
