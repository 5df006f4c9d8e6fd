"""HTTP byte ranges (RFC 9110, section 14). Pure.

One range is honoured; several at once, or a form we do not know, are answered by the whole, as the RFC allows.
"""

import re

_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})\Z", re.ASCII)


class Unsatisfiable(Exception):
    """The range lies beyond the end."""


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last; None for the whole. Raises Unsatisfiable."""
    match = _RANGE.match((header or "").strip())
    if match is None or match.group(1, 2) == ("", ""):
        return None
    first, last = match.group(1, 2)
    start, end = (int(first), int(last) + 1 if last else size) if first else (size - int(last), size)
    if first and last and end <= start:
        return None
    start, end = max(start, 0), min(end, size)
    if start >= end:
        raise Unsatisfiable
    return start, end
