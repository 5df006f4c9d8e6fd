"""Times that a model writes, made times that exist: `[hh:mm:ss]` becomes the start of what was said then. Pure.

A time after the last word is taken out. Words are streamed as they come, so this works on pieces cut anywhere.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from activities.payloads import SpeechSegment

LATE_S = 5.0
"""A time so long after the last word is still that word's."""
LONGEST = 16
"""Characters of a time in brackets."""
_TIME = re.compile(r"\[(?:(\d{1,3}):)?(\d{1,2}):(\d{2})(?:[.,]\d{1,3})?\] ?")
_BEGUN = re.compile(r"\[[\d:.,]*\Z|\[[\d:.,]+\]\Z")


class SpokenTimes:
    """When something was said in a talk."""

    def __init__(self, segments: Sequence[SpeechSegment]) -> None:
        self._starts = sorted({segment.start for segment in segments})
        self._end_s = max((segment.end for segment in segments), default=0.0)

    def at(self, time_s: float) -> float | None:
        """The start of what was being said at a time; written times have whole seconds. None: nothing was."""
        if not self._starts or time_s > self._end_s + LATE_S:
            return None
        return self._starts[max(bisect_right(self._starts, time_s + 0.999) - 1, 0)]


class TimeFilter:
    """Feed pieces of a text, get them with the times of a talk only."""

    def __init__(self, spoken: SpokenTimes) -> None:
        self._spoken = spoken
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text as far as no time may still be growing at its end."""
        text = self._held + piece
        begun = _BEGUN.search(text, max(len(text) - LONGEST, 0))
        keep = begun.start() if begun else len(text)
        self._held = text[keep:]
        return self._replaced(text[:keep])

    def finish(self) -> str:
        """What was held back."""
        rest, self._held = self._held, ""
        return self._replaced(rest)

    def _replaced(self, text: str) -> str:
        return _TIME.sub(self._replacement, text)

    def _replacement(self, written: re.Match[str]) -> str:
        start_s = self._spoken.at(seconds(written[1], written[2], written[3]))
        if start_s is None:
            return ""
        return f"[{stamp(start_s)}]{' ' if written[0].endswith(' ') else ''}"


def seconds(hours: str | None, minutes: str, rest: str) -> float:
    """Seconds of a written time."""
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(rest)


def stamp(seconds: float) -> str:
    """`hh:mm:ss`, rounded down."""
    whole = max(int(seconds), 0)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
