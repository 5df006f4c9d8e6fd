"""An ASGI response that sends chunks until they end, the client leaves, or the server stops.

Whichever comes first, the generator behind it is closed before the response is over: no connection leaves anything
running.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from anyio import CancelScope, create_task_group
from litestar.types import Receive, Scope, Send

from app.web import sse


class EventStream:
    """The response of a server-sent events route. `stopping` is set when the server is asked to stop."""

    def __init__(self, chunks: AsyncGenerator[bytes, None], stopping: asyncio.Event) -> None:
        self._chunks = chunks
        self._stopping = stopping
        self._client_left = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._chunks):
            await send({"type": "http.response.start", "status": 200, "headers": _headers()})
            async with create_task_group() as group:
                group.start_soon(self._until_the_client_leaves, receive, group.cancel_scope)
                group.start_soon(self._until_the_server_stops, group.cancel_scope)
                await self._send_all(send)
                group.cancel_scope.cancel()
        if not self._client_left:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, send: Send) -> None:
        async for chunk in self._chunks:
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _until_the_client_leaves(self, receive: Receive, scope: CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._client_left = True
        scope.cancel()

    async def _until_the_server_stops(self, scope: CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()


def _headers() -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in sse.HEADERS.items()]
