"""Whether permits ever exceeded a limit, from what was granted and held by Valkey's clock. Pure.

Times are milliseconds since 1970. `excused` are spans in which Valkey had lost its memory.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

Span = tuple[float, float]

ROUNDING_MS = 2
"""Valkey counts in microseconds, and tells milliseconds."""


def merged(spans: Iterable[Span]) -> list[Span]:
    """One owner's spans without overlaps: a claim that takes an owner's place over takes no second one."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def most_at_once(held: Iterable[tuple[str, Span]], excused: Sequence[Span]) -> tuple[int, float]:
    """The largest number of owners that held a place at one moment, and when. `held`: owner and span."""
    by_owner: dict[str, list[Span]] = defaultdict(list)
    for owner, span in held:
        by_owner[owner].append(span)
    moments: list[tuple[float, int]] = []
    for spans in by_owner.values():
        for begin, end in merged(spans):
            moments += [(begin, 1), (end, -1)]
    most, at, now = 0, 0.0, 0
    for moment, change in sorted(moments):  # who leaves goes before who comes in the same millisecond
        now += change
        if now > most and not _within(moment, excused):
            most, at = now, moment
    return most, at


def most_starts(starts_ms: Iterable[float], window_ms: float, excused: Sequence[Span]) -> tuple[int, float]:
    """The largest number of starts within any half-open window, and when it began."""
    times = sorted(starts_ms)
    most, at, first = 0, 0.0, 0
    for last, moment in enumerate(times):
        while moment - times[first] >= window_ms - ROUNDING_MS:
            first += 1
        if last - first + 1 > most and not _within(moment, excused):
            most, at = last - first + 1, times[first]
    return most, at


def _within(moment: float, spans: Sequence[Span]) -> bool:
    return any(begin <= moment <= end for begin, end in spans)
