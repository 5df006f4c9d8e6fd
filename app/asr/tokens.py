"""From the model's tokens to timed pieces of text (pure). A time token opens a piece, the next one closes it."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

TICK_S = 0.02
"""What one time token counts."""
SHORTEST_REST_S = 1.0
LOOP_RATIO = 2.4
"""Text that compresses better than this repeats itself."""


class Piece(NamedTuple):
    """Text tokens between two times, in seconds from the window's start."""

    start_s: float
    end_s: float
    tokens: list[int]


class Timed(NamedTuple):
    """The pieces of one window, and from where on it has to be heard again (None: it was heard to its end)."""

    pieces: list[Piece]
    rest_s: float | None


def timed(tokens: Sequence[int], first_time: int, duration_s: float, *, cut_off: bool) -> Timed:
    """Split `tokens` at the time tokens, which are those from `first_time` on.

    `cut_off`: the model was stopped at its limit, so a piece that was not closed is not whole and is left to the rest.
    """
    pieces: list[Piece] = []
    opened_s, text, opened = 0.0, [], False
    for token in tokens:
        if token < first_time:
            text.append(token)
            continue
        at_s = min((token - first_time) * TICK_S, duration_s)
        if text:
            pieces.append(Piece(opened_s, max(at_s, opened_s), text))
            text, opened = [], False
        else:
            opened = True
        opened_s = max(at_s, opened_s)
    goes_on = bool(pieces) and (cut_off if text else opened) and duration_s - opened_s > SHORTEST_REST_S
    if text and not goes_on:
        pieces.append(Piece(opened_s, duration_s, text))
    return Timed(pieces, opened_s if goes_on else None)


def loops(text: str) -> bool:
    """Whether the text is one phrase over and over."""
    data = text.encode()
    return len(data) > 40 and len(data) / len(zlib.compress(data)) > LOOP_RATIO
