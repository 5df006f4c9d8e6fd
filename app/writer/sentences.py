"""Lines become sentences, across their borders, each with the time of the line it begins in. Pure.

No word is added or lost: a sentence is a stretch of what was said, with a capital letter and a closing mark.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from app.writer.lexicon import ABBREVIATIONS, WIDE
from app.writer.reading import Line

LONGEST = 420
"""Characters after which speech without closing marks is cut at a line's border; a wide one counts for three."""
_CLOSING = "\"'”’』」）)\\]"
_END = re.compile(rf"[。！？]+[{_CLOSING}]*|[.!?…]+[{_CLOSING}]*(?=\s|$)|[!?]+(?=[{WIDE}])")
_CLOSED = re.compile(rf"[.!?…。！？][{_CLOSING}]*$")
_LAST_WORD = re.compile(r"([^\W\d_](?:[\w.]*\w)?)\.$")
_NOTE = re.compile(r"^(?:\[[^\]]*\]|\([^)]*\)|（[^）]*）|【[^】]*】)[.。]?$")
_WORD = re.compile(r"\w")
_WIDE = re.compile(f"[{WIDE}]")
_MARK = re.compile(r"[,.!?;:，。！？、；：]")
_WIDE_END = re.compile(rf"[{WIDE}，、；：。！？]$")


class Sentence(msgspec.Struct, frozen=True):
    """One sentence. `whole` is False where a gap in the recording cut it."""

    text: str
    start_s: int | None = None
    whole: bool = True


def sentences(lines: Sequence[Line]) -> list[Sentence]:
    """All sentences in order; notes such as [music] are none."""
    spoken = [line for line in lines if not _NOTE.match(line.text)]
    return [sentence for run in _runs(spoken) for sentence in _of_run(run)]


def is_wide(text: str) -> bool:
    """Whether a text is mostly Chinese, Japanese or Korean."""
    wide = len(_WIDE.findall(text))
    return wide * 3 > sum(character.isalpha() for character in text) > 0


def _runs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Lines that are spoken in one go."""
    run: list[Line] = []
    for line in lines:
        if run and not line.joins:
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _of_run(run: list[Line]) -> Iterator[Sentence]:
    text, borders = _joined(run)
    ends = list(_ends(text))
    begin = 0
    for end in [*ends, len(text)]:
        for first, last in _bounded(text, begin, end, borders):
            said = text[first:last].strip()
            if _WORD.search(said) and not _NOTE.match(said):
                spoken_at = last - len(text[first:last].lstrip())
                torn = bool(ends) and (last > ends[-1] or (first == 0 and said[:1].islower()))
                yield Sentence(_dressed(said), run[bisect_right(borders, spoken_at) - 1].start_s, not torn)
        begin = end


def _joined(run: list[Line]) -> tuple[str, list[int]]:
    """The run's text, and where in it each line begins."""
    parts: list[str] = []
    borders: list[int] = []
    length = 0
    pauses = not any(_END.search(line.text) for line in run)  # then the lines' ends are all the punctuation there is
    for line in run:
        close = not parts or _MARK.match(line.text) or (_WIDE.match(line.text) and _WIDE_END.search(parts[-1]))
        between = "" if close and not (pauses and parts) else " "
        borders.append(length + len(between))
        parts.append(between + line.text)
        length += len(parts[-1])
    return "".join(parts), borders


def _ends(text: str) -> Iterator[int]:
    """Where a sentence ends."""
    for match in _END.finditer(text):
        following = text[match.end() : match.end() + 2].strip()[:1]
        before = text[max(match.start() - 12, 0) : match.start() + 1]
        if match[0].startswith(("。", "！", "？")) or not (following.islower() or _abbreviated(before)):
            yield match.end()


def _abbreviated(before: str) -> bool:
    """Whether a text up to its last full stop ends in an abbreviation or an initial."""
    word = _LAST_WORD.search(before)
    return word is not None and (word[1].lower() in ABBREVIATIONS or (len(word[1]) == 1 and word[1] not in "I"))


def _bounded(text: str, begin: int, end: int, borders: list[int]) -> Iterator[tuple[int, int]]:
    """The stretch itself or, where it is too long for a sentence, its lines, a few together."""
    while _length(text, begin, end) > LONGEST:
        room = LONGEST // 6 if is_wide(text[begin : begin + LONGEST]) else LONGEST // 2
        at = bisect_right(borders, begin + room) - 1
        cut = borders[at] if at >= 0 and borders[at] > begin else _gap_before(text, begin, begin + room)
        yield begin, cut
        begin = cut
    yield begin, end


def _length(text: str, begin: int, end: int) -> int:
    return end - begin if end - begin > LONGEST else end - begin + 2 * len(_WIDE.findall(text, begin, end))


def _gap_before(text: str, begin: int, at: int) -> int:
    space = text.rfind(" ", begin + 1, at)
    return space if space > begin else at


def _dressed(said: str) -> str:
    """With a capital letter, and a closing mark if it has none."""
    said = said.rstrip(",，、;；:：—–- ")
    closed = said if _CLOSED.search(said) else said + ("。" if is_wide(said) else ".")
    return closed[:1].upper() + closed[1:]
