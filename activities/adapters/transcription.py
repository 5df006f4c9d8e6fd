"""A `Speech` provider over any OpenAI-compatible `/audio/transcriptions`, which answers in one call and keeps nothing.

What it heard is stored under the window's key before anything else happens, so that only a death inside a call is
paid for twice. What was recognised on silence, by the model's own doubt, is left out.
"""

import io
import math
from typing import Literal

import av
import httpx2
import msgspec
import openai

from activities.adapters.endpoint import MAX_DETAIL, cause, detail, passing, shown
from activities.adapters.retry_after import retry_after_s
from activities.adapters.speech_results import SpeechResults
from activities.payloads import SpeechSegment, SpeechStatus
from activities.ports import SpeechFault, SpeechRefused

TIMEOUT_S = 240.0
NO_SPEECH, UNSURE = 0.6, -1.0
"""A segment that is silence by the first, and a guess by the second, mean log probability, is no speech."""
Format = Literal["verbose_json", "json"]
FORMATS: tuple[Format, ...] = ("verbose_json", "json")
"""With times, and what models without times accept."""
CODES = {
    "arabic": "ar", "chinese": "zh", "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "finnish": "fi",
    "french": "fr", "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu", "indonesian": "id",
    "italian": "it", "japanese": "ja", "korean": "ko", "mandarin": "zh", "norwegian": "no", "persian": "fa",
    "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru", "spanish": "es", "swedish": "sv",
    "thai": "th", "turkish": "tr", "ukrainian": "uk", "vietnamese": "vi",
}  # fmt: skip
"""Some servers name languages instead of giving their codes."""


class _Segment(msgspec.Struct):
    start: float
    end: float
    text: str = ""
    no_speech_prob: float | None = None
    avg_logprob: float | None = None

    @property
    def spoken(self) -> bool:
        silent = (self.no_speech_prob or 0.0) > NO_SPEECH and (self.avg_logprob or 0.0) < UNSURE
        return bool(self.text.strip()) and not silent and math.isfinite(self.start) and math.isfinite(self.end)


class _Answer(msgspec.Struct):
    """Of either format; everything but the text may be absent."""

    text: str
    language: str | None = None
    duration: float | None = None
    segments: list[_Segment] | None = None


class TranscriptionEndpoint:
    """Transcribes with one model of one endpoint."""

    name = "openai-audio"
    whole = False

    def __init__(self, base_url: str, api_key: str, model: str, results: SpeechResults) -> None:
        self._model = model
        self._address = shown(base_url)
        self._results = results
        self._formats = list(FORMATS)
        self._client = openai.AsyncOpenAI(
            base_url=base_url, api_key=api_key, max_retries=0, timeout=httpx2.Timeout(TIMEOUT_S, connect=5.0)
        )

    async def aclose(self) -> None:
        await self._client.close()

    async def submit(self, key: str, audio: bytes, *, language: str | None) -> str:
        """Have the audio (Ogg Opus) heard, unless it was under this key already; the key is the task's id."""
        if await self._results.get(key) is None:
            answer = await self._heard(audio, language)
            await self._results.store(key, _status(key, answer, seconds_of(audio)))
        return key

    async def poll(self, task_id: str) -> SpeechStatus:
        """What was heard. A result that is not stored any more may be asked for again."""
        reason = "What the speech service heard is not stored any more."
        lost = SpeechStatus(task_id, "failed", error=reason, retryable=True)
        return await self._results.get(task_id) or lost

    async def _heard(self, audio: bytes, language: str | None) -> _Answer:
        """The answer in the first format that the model takes."""
        while True:
            try:
                return await self._call(audio, language, self._formats[0])
            except openai.BadRequestError as error:
                if "response_format" not in str(error.body) or len(self._formats) == 1:
                    raise _refusal_of(error) from error
                self._formats.pop(0)

    async def _call(self, audio: bytes, language: str | None, form: Format) -> _Answer:
        try:
            answer = await self._client.audio.transcriptions.with_raw_response.create(
                file=("speech.ogg", audio, "audio/ogg"),
                model=self._model,
                language=language or openai.omit,
                response_format=form,
            )
            return msgspec.json.decode(answer.content, type=_Answer)
        except openai.BadRequestError:
            raise
        except openai.APIStatusError as error:
            raise _refusal_of(error) from error
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            raise SpeechFault(f"The speech model at {self._address} did not answer in time.") from error
        except (openai.APIError, httpx2.TransportError) as error:
            raise SpeechFault(f"The connection to {self._address} failed ({cause(error)}).") from error
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise SpeechFault(f"{self._address} answered with something that is no transcript ({error}).") from error


def _refusal_of(error: openai.APIStatusError) -> SpeechFault | SpeechRefused:
    status = error.status_code
    if passing(status):
        return SpeechFault(f"The speech model is not available now ({status}).", retry_after_s(error.response.headers))
    if status in (401, 403):
        return SpeechRefused(f"The speech model's server does not accept the key ({status}).")
    if status == 404:
        return SpeechRefused("The speech model, or its address, is unknown (404).")
    return SpeechRefused(f"The speech model's server refused the audio ({status}): {detail(error.body)[:MAX_DETAIL]}.")


def _status(key: str, answer: _Answer, recorded_s: float) -> SpeechStatus:
    heard_s = recorded_s if answer.duration is None else min(max(answer.duration, 0.0), recorded_s)
    return SpeechStatus(
        key,
        "completed",
        progress=100.0,
        language=_code(answer.language),
        segments=_segments(answer, recorded_s),
        decoded_s=heard_s,
    )


def _segments(answer: _Answer, recorded_s: float) -> list[SpeechSegment]:
    """Those with words, in order and inside the recording; without times, all words at once."""
    if answer.segments is None:
        text = answer.text.strip()
        return [SpeechSegment(0.0, round(recorded_s, 3), text)] if text else []
    spoken = sorted((segment for segment in answer.segments if segment.spoken), key=lambda one: one.start)
    found: list[SpeechSegment] = []
    for one in spoken:
        start = min(max(one.start, 0.0), recorded_s)
        found.append(SpeechSegment(round(start, 3), round(min(max(one.end, start), recorded_s), 3), one.text.strip()))
    return found


def _code(language: str | None) -> str | None:
    name = (language or "").strip().lower()
    return name[:2] if len(name) == 2 or name[2:3] in ("-", "_") else CODES.get(name)


def seconds_of(audio: bytes) -> float:
    """The length of a recording of ours (Ogg Opus)."""
    with av.open(io.BytesIO(audio), "r", format="ogg") as container:
        return (container.duration or 0) / av.time_base
