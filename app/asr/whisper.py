"""What the whisper model hears in windows of speech, several at once. Blocking, and safe to call from several threads.

Each window is heard by itself, without the text before it, so that no error spreads; the decoding of a window is
bounded in tokens and in repetitions; a window that the model takes for silence gives no text.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from ctranslate2 import StorageView
from ctranslate2.models import WhisperGenerationResult
from faster_whisper import WhisperModel
from faster_whisper.audio import pad_or_trim
from faster_whisper.tokenizer import Tokenizer

from activities.payloads import SpeechSegment
from app.asr.audio import RATE, AudioRefused
from app.asr.tokens import loops, timed
from app.asr.windows import Window

BEAM = 2
SECOND_TRIES = (0.4, 0.8)
"""Temperatures at which a window is heard again whose text is a loop or a guess."""
GUESS_LOGPROB = -1.0
"""Mean log probability below which a text is a guess."""
NO_SPEECH = 0.6
TOKENS_PER_S, MOST_TOKENS = 10, 256


class Encoded(NamedTuple):
    """Windows as the model's encoder sees them."""

    windows: Sequence[Window]
    output: StorageView


class Heard(NamedTuple):
    """The text of one window, and the part of it that the model did not get to."""

    segments: list[SpeechSegment]
    rest: Window | None


class _Guess(NamedTuple):
    """One decoding of one window."""

    tokens: list[int]
    text: str
    logprob: float
    no_speech: float
    cut_off: bool

    @property
    def good(self) -> bool:
        return self.silent or (self.logprob >= GUESS_LOGPROB and not loops(self.text))

    @property
    def silent(self) -> bool:
        return self.no_speech > NO_SPEECH and self.logprob < GUESS_LOGPROB


class Whisper:
    """The loaded model. `folder` holds a CTranslate2 whisper model, or is a name that faster-whisper downloads."""

    def __init__(self, folder: str, *, threads: int, parallel: int) -> None:
        self._model = WhisperModel(folder, "cpu", compute_type="int8", cpu_threads=threads, num_workers=parallel)

    @property
    def languages(self) -> list[str]:
        """The codes of the languages it knows."""
        return self._model.supported_languages

    def encode(self, windows: Sequence[Window]) -> Encoded:
        """Each window, padded to the 30 s that the model hears, in the model's own terms: half of all the work."""
        extract = self._model.feature_extractor
        features = np.stack([pad_or_trim(extract(window.samples)[..., :-1]) for window in windows])
        return Encoded(windows, self._model.encode(features))

    def detect(self, encoded: Encoded) -> str:
        """The language of most of this speech."""
        if not self._model.model.is_multilingual:
            return "en"
        weights: dict[str, float] = {}
        for window, found in zip(encoded.windows, self._model.model.detect_language(encoded.output), strict=True):
            for token, probability in found:
                weights[token] = weights.get(token, 0.0) + probability * window.seconds
        return max(weights, key=weights.__getitem__).strip("<|>")

    def hear(self, encoded: Encoded, language: str) -> list[Heard]:
        """What is said in each window. Raises AudioRefused for a language the model does not know."""
        tokenizer = self._tokenizer(language)
        guesses = self._decode(tokenizer, encoded, temperature=0.0)
        return [self._heard(tokenizer, window, guess) for window, guess in zip(encoded.windows, guesses, strict=True)]

    def _heard(self, tokenizer: Tokenizer, window: Window, guess: _Guess) -> Heard:
        if not guess.good:
            guess = self._second_guess(tokenizer, window, guess)
        if guess.silent:
            return Heard([], None)
        split = timed(guess.tokens, tokenizer.timestamp_begin, window.seconds, cut_off=guess.cut_off)
        segments = [
            SpeechSegment(round(window.start / RATE + start, 2), round(window.start / RATE + end, 2), text)
            for start, end, tokens in split.pieces
            if (text := tokenizer.decode(tokens).strip()) and not loops(text)
        ]
        return Heard(without_echo(segments), window.behind(round(split.rest_s * RATE)) if split.rest_s else None)

    def _second_guess(self, tokenizer: Tokenizer, window: Window, first: _Guess) -> _Guess:
        """The first good one of some warmer decodings, else the likeliest of those that do not loop."""
        guesses, encoded = [first], self.encode([window])
        for temperature in SECOND_TRIES:
            guesses += self._decode(tokenizer, encoded, temperature=temperature)
            if guesses[-1].good:
                return guesses[-1]
        return max(guesses, key=lambda guess: (not loops(guess.text), guess.logprob))

    def _decode(self, tokenizer: Tokenizer, encoded: Encoded, *, temperature: float) -> list[_Guess]:
        prompt, limit = self._model.get_prompt(tokenizer, []), _limit(encoded.windows)
        results = self._model.model.generate(
            encoded.output,
            [prompt] * len(encoded.windows),
            beam_size=1 if temperature else BEAM,
            sampling_topk=0 if temperature else 1,
            sampling_temperature=temperature,
            max_length=len(prompt) + limit,
            return_scores=True,
            return_no_speech_prob=True,
        )
        return [_guess(tokenizer, result, limit) for result in results]

    def _tokenizer(self, language: str) -> Tokenizer:
        if language not in self.languages:
            raise AudioRefused("unknown_language", f"The model does not know the language {language!r}.")
        return Tokenizer(self._model.hf_tokenizer, self._model.model.is_multilingual, "transcribe", language)


def _guess(tokenizer: Tokenizer, result: WhisperGenerationResult, limit: int) -> _Guess:
    tokens = result.sequences_ids[0]
    logprob = result.scores[0] * len(tokens) / (len(tokens) + 1)
    return _Guess(tokens, tokenizer.decode(tokens), logprob, result.no_speech_prob, len(tokens) >= limit)


def _limit(windows: Sequence[Window]) -> int:
    """So many tokens may be decoded: more than the fastest speaker needs, few enough to bound a runaway."""
    return min(MOST_TOKENS, 32 + round(TOKENS_PER_S * max(window.seconds for window in windows)))


def without_echo(segments: list[SpeechSegment]) -> list[SpeechSegment]:
    """Without segments that only say again what the two before them said: a loop, not speech."""
    kept: list[SpeechSegment] = []
    for segment in segments:
        if len(kept) < 2 or not segment.text == kept[-1].text == kept[-2].text:
            kept.append(segment)
    return kept
