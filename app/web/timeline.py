"""Attempts as bars: where each one's time went, all drawn to one scale. Pure."""

from collections.abc import Sequence

import msgspec

from app.web.workflow_views import AttemptRow

PARTS = ("queue", "permit", "activity", "external")
WIDTH = 1000.0
NARROWEST = 4.0
"""Parts that took any time at all stay visible."""


class Piece(msgspec.Struct, frozen=True):
    """One part of a bar, in units of `WIDTH`."""

    part: str
    ms: int
    x: float
    width: float


class Bar(msgspec.Struct, frozen=True):
    """One attempt's bar."""

    attempt: AttemptRow
    pieces: list[Piece]
    total_ms: int


class Tries(msgspec.Struct, frozen=True):
    """One run of a step: its latest attempt, and those before it, the earliest first."""

    latest: Bar
    earlier: list[Bar]


def tries(drawn: Sequence[Bar]) -> list[Tries]:
    """The attempts of each step in each run, in the order the steps began."""
    found: dict[tuple[int, str], list[Bar]] = {}
    for bar in drawn:
        found.setdefault((bar.attempt.run, bar.attempt.step), []).append(bar)
    return [Tries(of_step[-1], of_step[:-1]) for of_step in found.values()]


def bars(attempts: Sequence[AttemptRow]) -> list[Bar]:
    """A bar for each attempt; the longest fills the width."""
    longest = max((sum(_times(attempt)) for attempt in attempts), default=0)
    return [_bar(attempt, WIDTH / longest if longest else 0.0) for attempt in attempts]


def _times(attempt: AttemptRow) -> tuple[int, ...]:
    return attempt.queue_ms, attempt.permit_ms, attempt.activity_ms, attempt.external_ms


def _bar(attempt: AttemptRow, scale: float) -> Bar:
    pieces, x = list[Piece](), 0.0
    for part, ms in zip(PARTS, _times(attempt), strict=True):
        if ms > 0:
            width = max(ms * scale, NARROWEST)
            pieces.append(Piece(part, ms, round(x, 1), round(width, 1)))
            x += width
    return Bar(attempt, pieces, sum(_times(attempt)))
