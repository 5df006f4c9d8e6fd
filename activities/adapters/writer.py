"""A `Writer` over any OpenAI-compatible chat endpoint, streaming.

A summary counts only when the model said that it is finished: whatever else ends the stream is a fault with a name.
Retries are the kernel's. The bytes of the stream are read here, because real servers send more than the SDK takes.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec
import openai

from activities.adapters.budget import Budget, most_tokens
from activities.adapters.endpoint import MAX_DETAIL, cause, detail, passing, shown
from activities.adapters.events import EventData, LineTooLong
from activities.adapters.prompts import BEGIN, END, framed, instructions
from activities.adapters.retry_after import retry_after_s
from activities.adapters.thoughts import ThoughtFilter
from activities.payloads import Usage, WriteRequest
from activities.ports import TooLong, UselessAnswer, WriterFault, WriterRefused

IDLE_TIMEOUT_S = 90.0  # between two pieces of the answer
MAX_TEXT = 1_000_000  # characters; no summary is that long
HEAD_BYTES = 2_000  # of an answer, kept to say what it was where it is no chat answer
USUAL_CONTEXT = 32_768
TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size)|maximum.{0,20}(context|tokens)|too (long|many tokens)"
    r"|exceed\w*.{0,40}(token|context)",
    re.IGNORECASE,
)
"""How servers say that a request does not fit; their codes differ as much as their words."""
ECHOED = re.compile(rf"{BEGIN}|{END}|^\s*Style: \w+\s+Language: ")
"""What stands in the request and in no summary."""


class _Delta(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Tokens(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(msgspec.Struct):
    """One event of the answer. Everything may be absent or null; `choices` is empty in a usage chunk."""

    choices: list[_Choice] | None = None
    usage: _Tokens | None = None
    error: Any = None


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in any one currency."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        """The cost of a usage."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1_000_000


def read_price(text: str) -> Price | None:
    """`0.15/0.60`: of a million tokens of prompt and of answer; None for no text. Raises ValueError."""
    if not text:
        return None
    prompt, _, completion = text.partition("/")
    return Price(float(prompt), float(completion))


USUAL_BUDGET = Budget(USUAL_CONTEXT, most_tokens)


class _Failure(msgspec.Struct):
    """A failure that came with status 200."""

    error: Any


class ChatWriter:
    """Writes summaries with one model of one endpoint."""

    def __init__(
        self, base_url: str, api_key: str, model: str, *, budget: Budget = USUAL_BUDGET, price: Price | None = None
    ) -> None:
        self.model = model
        self._address = shown(base_url)
        self._budget = budget
        self._price = price
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key,
            max_retries=0,
            timeout=httpx2.Timeout(IDLE_TIMEOUT_S, connect=5.0),
        )

    async def aclose(self) -> None:
        await self._client.close()

    def parts(self, request: WriteRequest) -> int:
        """In how many parts the request must be sent so that each fits into the model's context."""
        return self._budget.parts(instructions(request), framed(request.segments, request.gaps))

    async def write(self, request: WriteRequest) -> AsyncIterator[str | Usage]:
        """Stream the text as Markdown; the last item is the usage. Raises WriterFault, TooLong or WriterRefused."""
        reply = _Reply()
        try:
            async with self._client.chat.completions.with_streaming_response.create(
                model=self.model,
                messages=[
                    {"role": "system", "content": instructions(request)},
                    {"role": "user", "content": framed(request.segments, request.gaps)},
                ],
                stream=True,
                stream_options={"include_usage": True},
            ) as response:
                async for text in reply.texts(response.iter_bytes()):
                    yield text
        except openai.APIStatusError as error:
            raise _refusal_of(error) from error
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            raise WriterFault(f"The model at {self._address} did not answer in time.") from error
        except (openai.APIError, httpx2.TransportError) as error:
            raise WriterFault(f"The connection to the model at {self._address} failed ({cause(error)}).") from error
        reply.check()
        yield reply.usage if self._price is None else self._priced(self._price, reply.usage)

    def _priced(self, price: Price, usage: Usage) -> Usage:
        return Usage(usage.prompt_tokens, usage.completion_tokens, price.of(usage))


class _Reply:
    """One answer as it comes in, and whether it may count."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._finish: str | None = None
        self._thoughts = ThoughtFilter()
        self._begun = False
        self._text = ""
        self._refusal = ""
        self._head = b""

    async def texts(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
        """The summary's text. A connection that breaks after the model has finished changes nothing."""
        try:
            async for chunk in _chunks(self._seen(pieces)):
                self._begun = True
                if text := self._said(self._take(chunk)):
                    yield text
        except httpx2.TransportError:
            if self._finish is None:
                raise
        if text := self._said(self._thoughts.finish()):
            yield text

    async def _seen(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            if len(self._head) < HEAD_BYTES:
                self._head += piece[: HEAD_BYTES - len(self._head)]
            yield piece

    def _take(self, chunk: _Chunk) -> str:
        if chunk.error:
            raise _broken_off(chunk.error)
        if chunk.usage:
            self.usage = Usage(chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0)
        for choice in (chunk.choices or [])[:1]:
            self._finish = choice.finish_reason or self._finish
            if choice.delta:
                self._refusal = (self._refusal + (choice.delta.refusal or ""))[:MAX_DETAIL]
                return self._thoughts.feed(_plain(choice.delta.content))
        return ""

    def _said(self, text: str) -> str:
        """The text without blanks at the very beginning."""
        text = text if self._text else text.lstrip()
        self._text += text
        if len(self._text) > MAX_TEXT:
            raise UselessAnswer(f"The model wrote more than {MAX_TEXT} characters; that is no summary.")
        return text

    def check(self) -> None:
        """Raises where the answer is not a whole summary."""
        if not self._begun:
            raise _no_answer(self._head)
        if self._finish is None:
            raise WriterFault("The model's answer broke off before it was finished.")
        if self._finish == "length":
            raise UselessAnswer("The model's answer was cut off at its length limit.")
        if self._finish == "content_filter":
            raise WriterRefused("The model's provider withheld the summary (content filter).")
        if self._thoughts.inside:
            raise UselessAnswer("The model's answer ended in the middle of its thoughts.")
        if not self._text and self._refusal:
            raise WriterRefused(f"The model refused to write: {self._refusal}")
        if not self._text:
            raise UselessAnswer("The model's answer is empty.")
        if ECHOED.search(self._text):
            raise UselessAnswer("The model repeated what it was given instead of writing of it.")


async def _chunks(pieces: AsyncIterator[bytes]) -> AsyncIterator[_Chunk]:
    """The events of the answer, up to `[DONE]`."""
    events = EventData()
    try:
        async for piece in pieces:
            for data in events.feed(piece):
                if data.startswith("[DONE]"):
                    return
                yield msgspec.json.decode(data, type=_Chunk)
    except (msgspec.DecodeError, msgspec.ValidationError, LineTooLong) as error:
        raise UselessAnswer(f"The model's server sent something that is no chat answer ({error}).") from error


def _plain(content: str | list[dict[str, Any]] | None) -> str:
    """Text of a delta; some servers send parts, of which those of type text count."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    return content or ""


def _refusal_of(error: openai.APIStatusError) -> Exception:
    status, said = error.status_code, detail(error.body)
    if status in (400, 413, 422) and (TOO_LONG.search(said) or status == 413):
        return TooLong(said)
    if passing(status):
        wait_s = retry_after_s(error.response.headers)
        return WriterFault(f"The model is not available now ({status}).", wait_s)
    if status in (401, 403):
        return WriterRefused(f"The model's server does not accept the key ({status}). Check BATON_OPENAI_API_KEY.")
    if status == 404:
        return WriterRefused("The model, or its address, is unknown (404). Check BATON_OPENAI_MODEL and _BASE_URL.")
    return WriterRefused(f"The model's server refused the request ({status}): {said}.")


def _broken_off(error: Any) -> Exception:
    said = detail(error)
    return TooLong(said) if TOO_LONG.search(said) else WriterFault(f"The model broke off with an error: {said}.")


def _no_answer(head: bytes) -> Exception:
    """What to say of an answer that holds no event of a chat."""
    text = head.decode("utf-8", "replace").strip()
    if text.startswith("<"):
        return WriterFault("The model's server sent a web page instead of an answer. Check BATON_OPENAI_BASE_URL.")
    try:
        return _broken_off(msgspec.json.decode(text, type=_Failure).error)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return WriterFault("The model's server sent an empty answer.")
