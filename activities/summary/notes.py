"""The notes that a model took of a section, as lines with times of that section. Pure."""

import re

from activities.payloads import SpeechSegment
from activities.times import SpokenTimes, seconds

_LINE = re.compile(r"^[\s>#*+\-–—•\d.)]*?\**\[?(?:(\d{1,3}):)?(\d{1,2}):(\d{2})(?:[.,]\d{1,3})?\]?\**[\s:：\-–—]*(.*)$")
_MARKS = re.compile(r"^(?:[#>*+\-–—•]+\s+|\d{1,3}[.)]\s+)+")


def noted(text: str, section: list[SpeechSegment]) -> list[SpeechSegment]:
    """Each line of the notes at the time it names, or else at that of the line before; in order of time."""
    spoken = SpokenTimes(section)
    first_s, last_s = section[0].start, section[-1].end
    at_s, lines = first_s, list[tuple[float, str]]()
    for line in filter(None, map(str.strip, text.splitlines())):
        named = _LINE.match(line)
        told = spoken.at(seconds(named[1], named[2], named[3])) if named else None
        at_s = at_s if told is None else told
        said = named[4].strip() if named else _MARKS.sub("", line)
        if said:
            lines.append((at_s, said))
    lines.sort(key=lambda line: line[0])
    starts = [start_s for start_s, _ in lines]
    return [
        SpeechSegment(start_s, end_s, said)
        for (start_s, said), end_s in zip(lines, [*starts[1:], last_s], strict=False)
    ]
