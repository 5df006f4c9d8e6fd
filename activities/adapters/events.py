"""Server-sent events out of raw bytes that may be cut anywhere. Pure.

Comments and blocks without data (keep-alives, `retry:` or `id:` alone) are no events; an event that the end of the
stream cuts off is dropped, as the standard says.
"""

import re
from collections.abc import Iterator

MAX_LINE_BYTES = 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\r|\n")


class LineTooLong(Exception):
    """A line of the stream is longer than any event may be."""


class EventData:
    """Feed bytes, get the data of each complete event."""

    def __init__(self) -> None:
        self._held = b""
        self._after_cr = False
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[str]:
        """The data of the events that `piece` completes. Raises LineTooLong."""
        for line in self._lines(piece):
            if line:
                self._take(line)
            elif self._data:
                yield "\n".join(self._data)
                self._data = []

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        if self._after_cr and piece:
            piece, self._after_cr = piece.removeprefix(b"\n"), False
        *lines, self._held = _LINE_END.split(self._held + piece)
        self._after_cr = not self._held and piece.endswith(b"\r")
        if len(self._held) > MAX_LINE_BYTES:
            raise LineTooLong(f"A line of more than {MAX_LINE_BYTES} bytes arrived.")
        yield from lines
