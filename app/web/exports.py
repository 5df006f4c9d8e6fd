"""A finished summary and its transcript as files. Pure."""

import re
from collections.abc import Iterable
from typing import Protocol

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


def markdown(title: str, text: str) -> str:
    """The summary under its title."""
    return f"# {title}\n\n{text.strip()}\n"


def plain(title: str, text: str) -> str:
    """The summary without Markdown's marks. List items keep a dash."""
    bare = _PREFIX.sub(lambda match: "- " if match[0].strip() in ("*", "+") else "", text.strip())
    bare = _MARKS.sub("", _LINK.sub(r"\1", bare))
    return f"{title}\n\n{bare}\n"


def srt(lines: Iterable[Line]) -> str:
    """SubRip subtitles."""
    cues = (
        f"{number}\n{_time(line.start, ',')} --> {_time(line.end, ',')}\n{_cue(line.text)}\n"
        for number, line in enumerate(lines, start=1)
    )
    return "\n".join(cues)


def vtt(lines: Iterable[Line]) -> str:
    """WebVTT subtitles."""
    cues = (f"{_time(line.start, '.')} --> {_time(line.end, '.')}\n{_escaped(_cue(line.text))}\n" for line in lines)
    return "\n".join(["WEBVTT\n", *cues])


def file_name(title: str, extension: str) -> str:
    """A name that every file system takes, in the title's own letters."""
    stem = re.sub(r"[^\w.-]+", "-", title).strip("-.")[:80] or "summary"
    return f"{stem}.{extension}"


def _time(seconds: float, separator: str) -> str:
    whole, milliseconds = divmod(round(max(seconds, 0) * 1000), 1000)
    minutes, second = divmod(whole, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}{separator}{milliseconds:03}"


def _cue(text: str) -> str:
    """One line, so that no blank line ends the cue early, and no arrow that a player takes for a time."""
    return " ".join(text.split()).replace("-->", "→")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
