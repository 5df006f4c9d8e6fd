"""From a task's bytes to its text, step by step: each step names the sample up to which everything is recognised.

A recognition that is begun again with the last step's `settled` goes on behind it; what it yields then joins the text
stored so far without a word twice or missing.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from activities.payloads import SpeechSegment
from app.asr.audio import RATE, Recording, Samples
from app.asr.whisper import Whisper
from app.asr.windows import Window, WindowCutter

BATCH = 4
"""Windows heard at once; more is hardly faster and makes the steps longer."""
REST_DEPTH = 8
"""How often the remainder of a window is heard again."""


class Step(msgspec.Struct, frozen=True):
    """What was recognised since the step before. `settled` counts samples from the recording's beginning."""

    settled: int
    segments: list[SpeechSegment]
    language: str | None
    decoded_s: float
    stated_s: float | None


class Recognition:
    """One task's way through the model. `language` None: decided on the first speech."""

    def __init__(self, load: Callable[[], Whisper], data: bytes, language: str | None, settled: int = 0) -> None:
        self._load = load
        self._data = data
        self._language = language
        self._settled = settled
        self._decoded = 0

    def steps(self) -> Iterator[Step]:
        """The steps up to the end of the audio. Raises AudioRefused, and ModelMissing through `load`."""
        recording = Recording(self._data)
        cutter = WindowCutter(self._settled)
        try:
            for samples in recording.blocks():
                windows = cutter.push(self._unsettled(samples))
                yield from self._recognise(windows, cutter.settled, recording.stated_s)
            yield from self._recognise(cutter.finish(), self._decoded, recording.stated_s)
        finally:
            recording.close()

    def _unsettled(self, samples: Samples) -> Samples:
        """The part of the next samples that lies behind the point where this recognition began."""
        skip = min(max(self._settled - self._decoded, 0), len(samples))
        self._decoded += len(samples)
        return samples[skip:]

    def _recognise(self, windows: Sequence[Window], settled: int, stated_s: float | None) -> Iterator[Step]:
        for first in range(0, len(windows), BATCH):
            batch = windows[first : first + BATCH]
            ends = settled if first + BATCH >= len(windows) else batch[-1].end
            yield self._step(ends, self._segments(batch), stated_s)
        if not windows and settled > self._settled:
            yield self._step(settled, [], stated_s)

    def _step(self, settled: int, segments: list[SpeechSegment], stated_s: float | None) -> Step:
        self._settled = settled
        return Step(settled, segments, self._language, self._decoded / RATE, stated_s)

    def _segments(self, windows: Sequence[Window]) -> list[SpeechSegment]:
        """The text of a batch, remainders that the model left included, in the order of time."""
        model = self._load()
        found: list[SpeechSegment] = []
        for _ in range(REST_DEPTH):
            encoded = model.encode(windows)
            self._language = self._language or model.detect(encoded)
            heard = model.hear(encoded, self._language)
            found += [segment for each in heard for segment in each.segments]
            windows = [each.rest for each in heard if each.rest is not None]
            if not windows:
                break
        return sorted(found, key=lambda segment: segment.start)
