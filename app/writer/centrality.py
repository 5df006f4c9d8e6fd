"""LexRank: a sentence is central when it is like sentences that are central. Pure.

Similarities are taken through the terms, so that time and memory grow with the number of words and not with the square
of the sentences.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

DAMPING = 0.85
ROUNDS = 30


def centrality(weights: Sequence[Mapping[str, float]], expected: Sequence[float]) -> list[float]:
    """One value, at most 1, for each sentence's weighted terms; `expected` is how likely a reader begins there."""
    if not weights:
        return []
    rows, columns, values = _matrix(weights)
    count, width = len(weights), int(columns.max(initial=0)) + 1

    def spread(rank: NDArray[np.float64]) -> NDArray[np.float64]:
        through = np.bincount(columns, values * rank[rows], minlength=width)
        return np.bincount(rows, values * through[columns], minlength=count).astype(np.float64)

    degrees = np.maximum(spread(np.ones(count)), 1e-9)
    start = np.array(expected) / sum(expected)
    rank = start
    for _ in range(ROUNDS):
        rank = (1 - DAMPING) * start + DAMPING * spread(rank / degrees)
    return (rank / rank.max()).tolist()


def _matrix(weights: Sequence[Mapping[str, float]]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """The sentences as rows of length 1, sparse: row, column, value."""
    numbers: dict[str, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for row, own in enumerate(weights):
        length = sum(weight * weight for weight in own.values()) ** 0.5 or 1.0
        for term, weight in own.items():
            rows.append(row)
            columns.append(numbers.setdefault(term, len(numbers)))
            values.append(weight / length)
    return np.array(rows, np.intp), np.array(columns, np.intp), np.array(values, np.float64)
