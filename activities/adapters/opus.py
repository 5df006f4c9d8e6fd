"""Writes 16 kHz mono samples as Opus in Ogg, piece by piece: memory does not grow with the recording."""

from fractions import Fraction
from typing import IO

import av
import numpy as np

from activities.adapters.decoding import RATE, Samples

BIT_RATE = 24_000  # speech of broadcast quality; an hour takes about 11 MB


class OpusTrack:
    """A growing recording. `seconds` is its length so far; `close` completes the file. Blocking."""

    def __init__(self, file: IO[bytes]) -> None:
        self._container = av.open(file, "w", format="ogg")
        self._stream = self._container.add_stream("libopus", rate=RATE, options={"application": "voip"})
        self._stream.layout = "mono"
        self._stream.bit_rate = BIT_RATE
        self._written = 0

    @property
    def seconds(self) -> float:
        return self._written / RATE

    def append(self, samples: Samples) -> None:
        """Add samples at the end."""
        if not samples.size:
            return
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.rate, frame.pts, frame.time_base = RATE, self._written, Fraction(1, RATE)
        self._container.mux(self._stream.encode(frame))
        self._written += samples.size

    def silence(self, seconds: float) -> None:
        """Add silence, in blocks of a second."""
        left = round(seconds * RATE)
        while left > 0:
            block = min(left, RATE)
            self.append(np.zeros(block, np.int16))
            left -= block

    def close(self) -> None:
        """Write what the encoder still holds, and the end of the file."""
        if self._written:
            self._container.mux(self._stream.encode(None))
        self._container.close()
