"""The chapters that a summary names, as times that exist in the transcript. Pure.

A chapter is a heading that holds a time, or a list item that begins with one. A model may miscount: its times are moved
to the beginning of what was being said then, and dropped where nothing was.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from activities.payloads import Chapter, SpeechSegment

TIME = r"[\[(（]?(?<!\d)(?:(?P<h>\d{1,2}):)?(?P<m>\d{1,2}):(?P<s>\d{2})(?!\d)(?:\.\d+)?[\])）]?"
HEADING = re.compile(rf"^#{{1,6}}\s+(?P<before>.*?){TIME}(?P<after>.*)$")
ITEM = re.compile(rf"^(?:[-*+]|\d+[.)])\s+(?P<before>[*_`\s]*){TIME}(?P<after>.*)$")
TRIMMED = " \t*_`#:：-–—|·,，、()[]（）"
LATE_S = 5.0
"""A time so long after the last word is still that word's."""


def chapters_of(text: str, segments: Sequence[SpeechSegment]) -> list[Chapter]:
    """The chapters of a Markdown text, in order of time, one for each time."""
    starts = sorted({segment.start for segment in segments})
    end_s = max((segment.end for segment in segments), default=0.0)
    found: dict[float, str] = {}
    for line in text.splitlines():
        named = HEADING.match(line.strip()) or ITEM.match(line.strip())
        if named and (title := _title(named)) and (start := _spoken_at(_seconds(named), starts, end_s)) is not None:
            found.setdefault(start, title)
    return [Chapter(start, title) for start, title in sorted(found.items())]


def _title(named: re.Match[str]) -> str:
    before, after = named["before"].strip(TRIMMED), named["after"].strip(TRIMMED)
    return re.sub(r"[*_`]{1,3}", "", f"{before} {after}".strip())


def _seconds(named: re.Match[str]) -> float:
    return int(named["h"] or 0) * 3600 + int(named["m"]) * 60 + int(named["s"])


def _spoken_at(time_s: float, starts: Sequence[float], end_s: float) -> float | None:
    """The start of what was being said at a time; written times have whole seconds."""
    if not starts or time_s > end_s + LATE_S:
        return None
    return starts[max(bisect_right(starts, time_s + 0.999) - 1, 0)]
