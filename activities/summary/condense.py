"""What to ask of a model next when a talk is longer than it reads at once. Pure.

The talk is cut at pauses into sections that fit, notes are taken of each, and the summary is written from the notes, or
from notes of the notes where they are still too long. All follows from the request and from the notes that are stored,
so that any worker goes on where another one died, and no section is asked for twice.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from math import inf

import msgspec

from activities.payloads import Notes, SpeechSegment, WriteRequest

LINE_COST = 12
"""Characters that a line costs besides its text: its time."""
LEEWAY = 0.15
"""A section may be so much longer or shorter than its share, to end at a pause."""


class Unsplittable(Exception):
    """Not even a single line of the talk fits into the model's context."""


class Task(msgspec.Struct, frozen=True):
    """One request, and the key that its answer is stored under. `section` of `sections`, counted at its level."""

    key: str
    request: WriteRequest
    section: int = 1
    sections: int = 1


class Plan:
    """The way from a talk to its summary, for one model and the notes known so far."""

    def __init__(
        self, asked: WriteRequest, model: str, parts: Callable[[WriteRequest], int], known: Mapping[str, Notes]
    ):
        self._asked = asked
        self._model = model
        self._parts = parts
        self._known = known

    def next(self) -> Task:
        """The notes to take now; or, when none are missing, the summary. Raises Unsplittable."""
        asked = self._asked
        while (count := self._count(asked)) > 1:
            found = self._lines(asked, count)
            if isinstance(found, Task):
                return found
            asked = msgspec.structs.replace(self._asked, segments=found, condensed=True)
        return Task(self._key(asked), asked)

    def _lines(self, whole: WriteRequest, count: int) -> list[SpeechSegment] | Task:
        """The notes of a request that is sent in `count` parts, or what is missing of them."""
        lines: list[SpeechSegment] = []
        sections = split(whole, count)
        for number, section in enumerate(sections, 1):
            found = self._notes(section)
            if isinstance(found, Task):
                return msgspec.structs.replace(found, section=number, sections=len(sections))
            lines += found
        return lines

    def _notes(self, section: WriteRequest) -> list[SpeechSegment] | Task:
        if (count := self._count(section)) > 1:
            return self._lines(section, count)
        key = self._key(section)
        known = self._known.get(key)
        return known.lines if known else Task(key, section)

    def _count(self, request: WriteRequest) -> int:
        """Parts by the writer's estimate; two at least where the model said that it is too long."""
        known = self._known.get(self._key(request))
        return max(self._parts(request), 2 if known and known.too_long else 1)

    def _key(self, request: WriteRequest) -> str:
        return sha256(msgspec.json.encode((self._model, request))).hexdigest()[:24]


def split(whole: WriteRequest, count: int) -> list[WriteRequest]:
    """Requests for notes of `count` sections of about the same length, in order. Raises Unsplittable."""
    segments = whole.segments
    if len(segments) < 2:
        raise Unsplittable
    borders = [0, *_borders(segments, min(count, len(segments))), len(segments)]
    begins_s = [-inf, *(segments[at].start for at in borders[1:-1]), inf]
    return [
        _section(whole, segments[first:last], begin_s, end_s)
        for (first, last), (begin_s, end_s) in zip(pairwise(borders), pairwise(begins_s), strict=True)
    ]


def _section(whole: WriteRequest, segments: list[SpeechSegment], begin_s: float, end_s: float) -> WriteRequest:
    """One section, with the gaps up to the next one's beginning."""
    gaps = [gap for gap in whole.gaps if begin_s <= gap.start_s < end_s]
    return msgspec.structs.replace(whole, segments=segments, gaps=gaps, kind="notes")


def _borders(segments: Sequence[SpeechSegment], count: int) -> list[int]:
    """Numbers of the segments that sections begin with: near equal shares, where the speaker paused longest."""
    ends: list[int] = []
    for segment in segments:
        ends.append((ends[-1] if ends else 0) + len(segment.text) + LINE_COST)
    share = ends[-1] / count
    borders: list[int] = []
    for number in range(1, count):
        least, most = (borders[-1] if borders else 0) + 1, len(segments) - (count - number)
        allowed = range(least, most + 1)
        near = [at for at in allowed if abs(ends[at - 1] - share * number) <= share * LEEWAY]
        closest = min(allowed, key=lambda at: abs(ends[at - 1] - share * number))
        borders.append(max(near or [closest], key=lambda at: segments[at].start - segments[at - 1].end))
    return borders
