"""The compact frame of the client stream: one header byte, `version << 4 | kind`, and the payload.

Whoever reads a frame may be of another release than who wrote it: an unknown version is refused, never guessed at.
"""

import msgspec

from kernel.errors import KernelError

VERSION = 1

TEXT = 1
"""Payload: UTF-8 text, whole characters only."""
NOTICE = 2
"""No payload: the record has changed, look at it again."""
TERMINAL = 5
"""Payload: the terminal reference. Nothing follows. Every other kind is a control record that readers may pass over."""


class UnknownFrameVersion(KernelError):
    """This frame is of a version that is not known here."""


class Frame(msgspec.Struct, frozen=True):
    """A decoded frame; `kind` is 0 to 15."""

    kind: int
    payload: bytes


def encode(kind: int, payload: bytes = b"") -> bytes:
    """The frame's bytes. Raises ValueError for a kind that does not fit the header."""
    if not 0 <= kind <= 15:
        raise ValueError(f"frame kind {kind} does not fit four bits: use 0 to 15")
    return bytes((VERSION << 4 | kind,)) + payload


def decode(record: bytes) -> Frame:
    """The frame in `record`. Raises UnknownFrameVersion, for an empty record too: it names no version."""
    if not record:
        raise UnknownFrameVersion("An empty record is not a frame: its header byte is missing.")
    version, kind = record[0] >> 4, record[0] & 0x0F
    if version != VERSION:
        raise UnknownFrameVersion(f"Frame version {version} is not known here; this release reads version {VERSION}.")
    return Frame(kind, record[1:])
