"""The wire format of server-sent events, as raw bytes.

Only events that carry an `id` move the reader's Last-Event-ID; a comment is a line of its own, never `data:`.
"""

from collections.abc import Mapping

import msgspec

RETRY = b"retry: 2000\n\n"
"""First on every connection: reconnect after 2 s."""
COMMENT = b": still here\n\n"
"""Keeps proxies from cutting a quiet connection."""
HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}


class Event(msgspec.Struct, frozen=True):
    """One event. `data` is JSON without a line break."""

    name: str
    data: bytes = b"{}"
    id: str = ""


def encode(event: Event) -> bytes:
    """The event's lines and the blank line that ends it."""
    lines = [b"event: " + event.name.encode()]
    if event.id:
        lines.append(b"id: " + event.id.encode())
    lines.append(b"data: " + event.data)
    return b"\n".join(lines) + b"\n\n"
