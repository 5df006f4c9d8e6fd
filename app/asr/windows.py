"""Cuts a run of samples into windows of speech, at most 28 s each, ended by a pause if there is one.

What is outside the windows is silence, noise or music and is never shown to the model, which would invent words for it.
Every window is recognised by itself, so a recognition can be taken up again behind any of them.
"""

from typing import NamedTuple

import numpy as np
from faster_whisper.vad import VadOptions, get_speech_timestamps

from app.asr.audio import RATE, Samples

LONGEST_S = 28.0
"""A window's length; the model hears 30 s at once."""
PAUSE_S = 3.0
"""A longer pause ends a window: the model is at its worst on silence."""
BLOCK_S = 90.0
"""So much audio is searched for speech at once."""
LEAD_S = 1.0
"""Kept of silence: the beginning of a word may already be in it."""
_VAD = VadOptions(max_speech_duration_s=LONGEST_S, min_silence_duration_ms=160, min_speech_duration_ms=200)


class Window(NamedTuple):
    """Samples in which somebody speaks. `start` counts samples from the beginning of the recording."""

    start: int
    samples: Samples

    @property
    def end(self) -> int:
        return self.start + len(self.samples)

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE

    def behind(self, offset: int) -> "Window":
        """The rest of this window, `offset` samples after its start."""
        return Window(self.start + offset, self.samples[offset:])


class WindowCutter:
    """Is given samples in order and returns windows in order. Samples before `settled` are dealt with."""

    def __init__(self, settled: int = 0) -> None:
        self.settled = settled
        self._held: list[Samples] = []
        self._held_samples = 0

    def push(self, samples: Samples) -> list[Window]:
        """Take the next samples; the windows that are complete by now."""
        self._held.append(samples)
        self._held_samples += len(samples)
        if self._held_samples < BLOCK_S * RATE:
            return []
        return self._cut(last=False)

    def finish(self) -> list[Window]:
        """The remaining windows."""
        return self._cut(last=True) if self._held_samples else []

    def _cut(self, *, last: bool) -> list[Window]:
        audio = np.concatenate(self._held)
        spans = grouped([(span["start"], span["end"]) for span in get_speech_timestamps(audio, _VAD)])
        keep_from = len(audio) if last else _open_from(spans, len(audio))
        windows = [Window(self.settled + start, audio[start:end]) for start, end in spans if end <= keep_from]
        self._held, self._held_samples = [audio[keep_from:]], len(audio) - keep_from
        self.settled += keep_from
        return windows


def grouped(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbouring spans of speech joined up to the longest window, never over a long pause."""
    groups: list[tuple[int, int]] = []
    for start, end in spans:
        if groups and end - groups[-1][0] <= LONGEST_S * RATE and start - groups[-1][1] <= PAUSE_S * RATE:
            groups[-1] = (groups[-1][0], end)
        else:
            groups.append((start, end))
    return groups


def _open_from(spans: list[tuple[int, int]], length: int) -> int:
    """From where on the audio must be looked at again: the last window may go on, and so may a word just begun."""
    if spans and spans[-1][1] > length - PAUSE_S * RATE:
        return spans[-1][0]
    return max(length - round(LEAD_S * RATE), spans[-1][1] if spans else 0)
