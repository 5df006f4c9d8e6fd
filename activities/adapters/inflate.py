"""Content decoding with a bound on what comes out, so that a small answer cannot fill the memory."""

import zlib

from activities.ports import SourceFault, SourceRefused

_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class Inflater:
    """Decodes one answer's body piece by piece. A piece never yields more than `room` bytes."""

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity") and name not in _WINDOW_BITS:
            raise SourceRefused(f"The answer is packed as {encoding!r}, which was not asked for.")
        self._zlib = zlib.decompressobj(_WINDOW_BITS[name]) if name in _WINDOW_BITS else None

    def feed(self, piece: bytes, room: int) -> bytes:
        """The decoded bytes of `piece`, cut at `room` bytes: a result of that length may be incomplete."""
        if self._zlib is None:
            return piece[:room]
        try:
            return self._zlib.decompress(piece, max(room, 1))[:room]
        except zlib.error as error:
            raise SourceFault(f"The answer is packed wrongly ({error}).") from error

    def finish(self) -> None:
        """Raises SourceFault when the body ended in the middle."""
        if self._zlib is not None and not self._zlib.eof:
            raise SourceFault("The answer broke off in the middle of packed data.")
