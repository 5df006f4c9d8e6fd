"""What is asked and of which text: read from the messages of a chat. Pure.

Style, language and title count only where the system message says so; the user's text is data, whatever it says.
"""

import re
from collections.abc import Sequence

import msgspec

from app.writer.chat import Message

BEGIN, END = "<transcript>", "</transcript>"
STYLES = ("brief", "detailed", "chapters", "minutes", "notes")
_MARKER = re.compile(r"^(Style|Language|Title):[ \t]*(.*)$", re.MULTILINE)
_TIME = re.compile(r"^(#+\s*)?\[(?:(\d{1,3}):)?(\d{1,2}):(\d{2})(?:[.,]\d+)?\]\s*(.*)$")
_GAP = re.compile(r"^\((?:\d{1,3}:)?\d{1,2}:\d{2}.*\)$")
_HEADING = re.compile(r"^#{1,6}\s")
_DASH = re.compile(r"^(?:[-–—*+•>]+\s+)+")
_ITEM = re.compile(r"^(?:[-–—*+•>]+\s+)*(?:\d{1,3}[.)]\s+)?")


class Line(msgspec.Struct, frozen=True):
    """One line of text with the second it begins at. `joins` is False after a gap, a blank line or a list mark."""

    text: str
    start_s: int | None = None
    joins: bool = True


class Task(msgspec.Struct, frozen=True):
    """A text to summarise, and how. `language` is auto, or what the reader wished for."""

    lines: list[Line]
    style: str = "brief"
    language: str = "auto"
    title: str = ""


def read_task(messages: Sequence[Message]) -> Task:
    """The task that a conversation states; its text is the last message of the user."""
    system = "\n".join(message.text for message in messages if message.role in ("system", "developer"))
    told: dict[str, str] = {}
    for name, value in _MARKER.findall(system):
        told.setdefault(name, value.strip())
    style = told.get("Style", "").lower()
    text = next((message.text for message in reversed(messages) if message.role == "user"), "")
    return Task(
        read_lines(text),
        style if style in STYLES else "brief",
        told.get("Language", "auto").lower() or "auto",
        told.get("Title", ""),
    )


def read_lines(text: str) -> list[Line]:
    """The lines between the transcript marks, or all if there are none; notes of gaps and headings are no text."""
    lines: list[Line] = []
    joins, start_s = False, None
    for raw in _framed(text.splitlines()):
        timed = _TIME.match(raw.strip())
        if timed:
            start_s = int(timed[2] or 0) * 3600 + int(timed[3]) * 60 + int(timed[4])
        said = timed[5] if timed else raw.strip()
        if not said or _GAP.match(said) or _HEADING.match(said) or (timed and timed[1]):
            joins = False
            continue
        plain = (_DASH if timed else _ITEM).sub("", said)
        lines.append(Line(" ".join(plain.split()), start_s, joins and plain == said))
        joins = True
    return lines


def _framed(lines: list[str]) -> list[str]:
    marks = [line.strip() for line in lines]
    if BEGIN not in marks:
        return lines
    begin = marks.index(BEGIN) + 1
    ends = [at for at, mark in enumerate(marks) if mark == END and at >= begin]
    return lines[begin : ends[-1]] if ends else lines[begin:]
