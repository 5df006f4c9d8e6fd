"""The part of OpenAI's chat format that the writer speaks: requests in, chunks and usage out. Pure.

Tokens are estimated, about as many as a model's tokenizer would count: four characters each, one for each character of
Chinese, Japanese or Korean.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from app.writer.lexicon import WIDE

MODEL = "baton-extractive"
_WIDE = re.compile(f"[{WIDE}]")
_PIECE = re.compile(rf"\s*(?:[{WIDE}]{{1,2}}[，。！？、；：]?|(?:(?![{WIDE}])\S)+)|\s+")
_NARROW_PER_TOKEN = 4


class Refused(Exception):
    """The request cannot be answered as it is; `param` and `code` as OpenAI's errors have them."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.param, self.code, self.status = param, code, status


class Part(msgspec.Struct):
    """One part of a message's content."""

    type: str
    text: str = ""


class Message(msgspec.Struct):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """The content, its parts one below the other."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(msgspec.Struct):
    """What else a stream carries."""

    include_usage: bool = False


class Format(msgspec.Struct):
    """The form of the answer."""

    type: str = "text"


class ChatRequest(msgspec.Struct):
    """A request for a completion; what bears on sampling is passed over, since nothing is sampled."""

    model: str
    messages: list[Message]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = 1
    response_format: Format | None = None

    @property
    def limit(self) -> int | None:
        """Tokens the answer may have at most."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with a usage chunk."""
        return self.stream_options is not None and self.stream_options.include_usage


class Usage(msgspec.Struct, frozen=True):
    """Estimated tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Answer(msgspec.Struct, frozen=True):
    """What is said, why it ends there, and the names it goes out under. `created` is a Unix time."""

    id: str
    created: int
    text: str
    finish: Literal["stop", "length"]
    usage: Usage

    def whole(self) -> dict[str, Any]:
        """The answer in one piece."""
        message = {"role": "assistant", "content": self.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish}
        return self._named("chat.completion", [choice]) | {"usage": self.usage}

    def opening(self) -> bytes:
        """First event of a stream."""
        return self._event([_choice({"role": "assistant", "content": ""})])

    def said(self, piece: str) -> bytes:
        """Event with a piece of the text."""
        return self._event([_choice({"content": piece})])

    def closing(self, *, with_usage: bool) -> bytes:
        """The last events: why it ends, usage if wanted, end of the stream."""
        usage = self._event([], self.usage) if with_usage else b""
        return self._event([_choice({}, self.finish)]) + usage + b"data: [DONE]\n\n"

    def _event(self, choices: list[dict[str, Any]], usage: Usage | None = None) -> bytes:
        chunk = self._named("chat.completion.chunk", choices) | {"usage": usage}
        return b"data: " + msgspec.json.encode(chunk) + b"\n\n"

    def _named(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": MODEL, "choices": choices}


def _choice(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def read_request(body: bytes) -> ChatRequest:
    """A request that can be answered. Raises Refused with what is wrong with it."""
    try:
        request = msgspec.json.decode(body, type=ChatRequest)
    except msgspec.ValidationError as error:
        raise Refused(f"The request is not a chat request: {error}.", _path(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"The request's body is not JSON: {error}.") from error
    if request.model != MODEL:
        message = f"The model {request.model[:100]!r} does not exist here; the only one is {MODEL!r}."
        raise Refused(message, "model", "model_not_found", 404)
    _check(request)
    return request


def _check(request: ChatRequest) -> None:
    if not request.messages:
        raise Refused("`messages` is empty; it needs at least one message.", "messages")
    if request.n not in (None, 1):
        raise Refused("This model gives one choice; leave out `n`, or set it to 1.", "n", "unsupported_value")
    if request.response_format and request.response_format.type != "text":
        raise Refused("This model answers in plain text only.", "response_format", "unsupported_value")
    if request.limit is not None and request.limit < 1:
        raise Refused("The number of tokens must be at least 1.", "max_tokens", "invalid_value")
    for message in request.messages:
        if isinstance(message.content, list) and any(part.type != "text" for part in message.content):
            raise Refused("This model reads text only.", "messages", "unsupported_value")


def _path(problem: str) -> str | None:
    """The field that a message of msgspec's names."""
    at = re.search(r"at `\$\.?([^`]*)`", problem)
    missing = re.search(r"required field `([^`]*)`", problem)
    return (at and at[1]) or (missing and missing[1]) or None


def pieces(text: str) -> Iterator[str]:
    """The text, a word at a time; joined again it is the same."""
    return (match[0] for match in _PIECE.finditer(text))


def tokens(text: str) -> int:
    """About how many tokens a model would count."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // _NARROW_PER_TOKEN)


def answer(name: str, created: int, prompt: str, text: str, limit: int | None) -> Answer:
    """The answer to a prompt, cut off where `limit` tokens are used up."""
    said = text if limit is None else _cut(text, limit)
    asked, given = tokens(prompt), tokens(said)
    finish = "stop" if said == text else "length"
    return Answer(name, created, said, finish, Usage(asked, given, asked + given))


def _cut(text: str, limit: int) -> str:
    said = ""
    for piece in pieces(text):
        if tokens(said + piece) > limit:
            break
        said += piece
    return said
