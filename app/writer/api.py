"""The writer's HTTP API, as OpenAI's clients speak it. Errors are `{"error": {"message", "type", "param", "code"}}`."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.exceptions import HTTPException
from litestar.params import FromPath
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from app.web.event_stream import EventStream
from app.writer.chat import MODEL, Answer, ChatRequest, Refused, answer, pieces, read_request
from app.writer.extract import summarise
from app.writer.reading import read_task

LARGEST_BYTES = 8 * 1024 * 1024
AT_ONCE = 2
"""Texts read at the same time; the others wait their turn."""
log = logging.getLogger(__name__)


class Desk:
    """Writes answers. `pace` is in characters a second; 0: as fast as the client reads."""

    def __init__(self, pace: float, stopping: asyncio.Event) -> None:
        self._pace = pace
        self._stopping = stopping
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def answer(self, request: ChatRequest) -> Answer:
        """The whole answer; a stream only shows it bit by bit."""
        async with self._turns:
            text = await asyncio.to_thread(_written, request)
        prompt = "\n".join(message.text for message in request.messages)
        return answer(f"chatcmpl-{uuid4().hex}", int(time.time()), prompt, text, request.limit)

    def stream(self, said: Answer, *, with_usage: bool) -> EventStream:
        """The answer at the pace set, until it is said, the client leaves, or the server stops."""
        return EventStream(self._events(said, with_usage), self._stopping)

    async def _events(self, said: Answer, with_usage: bool) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        began, characters = loop.time(), 0
        yield said.opening()
        for piece in pieces(said.text):
            yield said.said(piece)
            characters += len(piece)
            due = began + characters / self._pace if self._pace else 0.0
            await asyncio.sleep(max(due - loop.time(), 0.0))
        yield said.closing(with_usage=with_usage)


def _written(request: ChatRequest) -> str:
    return summarise(read_task(request.messages))


def create_app(pace: float, stopping: asyncio.Event) -> Litestar:
    """The application; `stopping` ends the streams that are open."""
    desk = Desk(pace, stopping)
    shown = {"id": MODEL, "object": "model", "created": int(time.time()), "owned_by": "baton"}

    @post("/v1/chat/completions", request_max_body_size=LARGEST_BYTES, status_code=200)
    async def complete(request: Request[Any, Any, Any]) -> ASGIApp:
        """A summary of the transcript, or of any text, in the last message of the user."""
        asked = read_request(await request.body())
        said = await desk.answer(asked)
        return desk.stream(said, with_usage=asked.wants_usage) if asked.stream else _json(said.whole())

    @get("/v1/models")
    async def models() -> dict[str, Any]:
        """The one model there is."""
        return {"object": "list", "data": [shown]}

    @get("/v1/models/{name:str}")
    async def model(name: FromPath[str]) -> dict[str, Any]:
        """The model by name."""
        if name != MODEL:
            raise Refused(f"The model {name[:100]!r} does not exist here.", "model", "model_not_found", 404)
        return shown

    @get("/healthz")
    async def health() -> dict[str, str]:
        """It has nothing that could be missing."""
        return {"status": "ok", "model": MODEL}

    return Litestar(
        [complete, models, model, health],
        exception_handlers={Exception: _refusal},
        openapi_config=None,
        logging_config=None,
    )


def _json(shown: dict[str, Any]) -> ASGIApp:
    return ASGIResponse(body=msgspec.json.encode(shown), media_type="application/json")


def _refusal(_: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    match error:
        case Refused():
            return _error(error.status, str(error), error.param, error.code)
        case HTTPException(status_code=413):
            return _error(413, f"The request is larger than {LARGEST_BYTES >> 20} MiB.", None, "request_too_large")
        case HTTPException(status_code=status) if status < 500:
            return _error(status, f"{error.detail}. There are POST /v1/chat/completions and GET /v1/models.")
    log.error("a request failed", exc_info=error)
    return _error(500, "The writer failed on this request; its log says how.", None, "internal_error", "server_error")


def _error(
    status: int, message: str, param: str | None = None, code: str | None = None, kind: str = "invalid_request_error"
) -> Response[dict[str, Any]]:
    return Response({"error": {"message": message, "type": kind, "param": param, "code": code}}, status_code=status)
