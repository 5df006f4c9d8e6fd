"""A finished summary and its transcript as files. Pure."""

import re
from collections.abc import Iterable
from typing import Protocol

import msgspec

SHORTEST_MS = 200
"""A cue that ends where it begins is shown for so long."""
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"(\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))")
_PREFIX = re.compile(r"^(#{1,6}[ \t]+|>[ \t]?|[ \t]*[*+][ \t]+)", re.MULTILINE)


class Line(Protocol):
    """A stretch of transcript; times in seconds."""

    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...
    @property
    def text(self) -> str: ...


class Cue(msgspec.Struct, frozen=True):
    """A line of subtitles; times in milliseconds."""

    start_ms: int
    end_ms: int
    text: str


def markdown(title: str, text: str) -> str:
    """The summary under its title."""
    return f"# {_one_line(title)}\n\n{text.strip()}\n"


def plain(title: str, text: str) -> str:
    """The summary without Markdown's marks. List items keep a dash."""
    bare = _PREFIX.sub(lambda match: "- " if match[0].strip() in ("*", "+") else "", text.strip())
    bare = _MARKS.sub("", _LINK.sub(r"\1", bare))
    return f"{_one_line(title)}\n\n{bare}\n"


def srt(lines: Iterable[Line]) -> str:
    """SubRip subtitles."""
    cues = (
        f"{number}\n{_time(cue.start_ms, ',')} --> {_time(cue.end_ms, ',')}\n{cue.text}\n"
        for number, cue in enumerate(cues_of(lines), start=1)
    )
    return "\n".join(cues)


def vtt(lines: Iterable[Line]) -> str:
    """WebVTT subtitles."""
    cues = (
        f"{_time(cue.start_ms, '.')} --> {_time(cue.end_ms, '.')}\n{_escaped(cue.text)}\n" for cue in cues_of(lines)
    )
    return "\n".join(["WEBVTT\n", *cues])


def cues_of(lines: Iterable[Line]) -> list[Cue]:
    """One cue for each line with words, in order of time; each lasts a while, and none longer than to the next one."""
    said = sorted((line for line in lines if line.text.strip()), key=lambda line: line.start)
    starts = [round(max(line.start, 0) * 1000) for line in said]
    cues: list[Cue] = []
    for line, start_ms, next_ms in zip(said, starts, [*starts[1:], None], strict=False):
        end_ms = max(round(line.end * 1000), start_ms + SHORTEST_MS)
        if next_ms is not None and next_ms > start_ms:
            end_ms = min(end_ms, next_ms)
        cues.append(Cue(start_ms, end_ms, _cue(line.text)))
    return cues


def file_name(title: str, extension: str) -> str:
    """A name that every file system takes, in the title's own letters."""
    stem = re.sub(r"[^\w.-]+", "-", title).strip("-.")[:80] or "summary"
    return f"{stem}.{extension}"


def _time(time_ms: int, separator: str) -> str:
    whole, milliseconds = divmod(time_ms, 1000)
    minutes, second = divmod(whole, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}{separator}{milliseconds:03}"


def _cue(text: str) -> str:
    """One line, so that no blank line ends the cue early, and no arrow that a player takes for a time."""
    return _one_line(text).replace("-->", "→")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
