"""The chapters that a summary names, as times that exist in the transcript. Pure.

A chapter is a heading that holds a time, or a list item that begins with one. A model may miscount: its times are moved
to the beginning of what was being said then, and dropped where nothing was.
"""

import re
from collections.abc import Sequence

from activities.payloads import Chapter, SpeechSegment
from activities.times import SpokenTimes, seconds

TIME = r"[\[(（]?(?<!\d)(?:(?P<h>\d{1,2}):)?(?P<m>\d{1,2}):(?P<s>\d{2})(?!\d)(?:\.\d+)?[\])）]?"
HEADING = re.compile(rf"^#{{1,6}}\s+(?P<before>.*?){TIME}(?P<after>.*)$")
ITEM = re.compile(rf"^(?:[-*+]|\d+[.)])\s+(?P<before>[*_`\s]*){TIME}(?P<after>.*)$")
TRIMMED = " \t*_`#:：-–—|·,，、()[]（）"


def chapters_of(text: str, segments: Sequence[SpeechSegment]) -> list[Chapter]:
    """The chapters of a Markdown text, in order of time, one for each time."""
    spoken = SpokenTimes(segments)
    found: dict[float, str] = {}
    for line in text.splitlines():
        named = HEADING.match(line.strip()) or ITEM.match(line.strip())
        start_s = spoken.at(seconds(named["h"], named["m"], named["s"])) if named else None
        if named and start_s is not None and (title := _title(named)):
            found.setdefault(start_s, title)
    return [Chapter(start, title) for start, title in sorted(found.items())]


def _title(named: re.Match[str]) -> str:
    before, after = named["before"].strip(TRIMMED), named["after"].strip(TRIMMED)
    return re.sub(r"[*_`]{1,3}", "", f"{before} {after}".strip())
