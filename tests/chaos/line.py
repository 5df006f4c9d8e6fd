"""The line between the processes and MongoDB, on which requests can be held up, overtaken, and delivered late.

A request that is held is delivered in the end, even if its sender has long given up on it and done something else:
that is what networks do, and what a write without the right condition does not survive.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

CHUNK_BYTES = 65536
LINGER_S = 0.3
"""MongoDB learns only then that the other side has gone."""


class Line:
    """A TCP proxy before one server. `held` counts deliveries that were late."""

    def __init__(self, url: str, chosen: Callable[[], bool]) -> None:
        self._port = urlsplit(url).port
        self._chosen = chosen  # whether a connection is one of those that are held up
        self._connections: set[asyncio.Task[None]] = set()
        self._free: dict[asyncio.Task[None], asyncio.Event] = {}
        self._server: asyncio.Server | None = None
        self.held = 0

    @property
    def url(self) -> str:
        """Address for clients, who are to take this way and no other."""
        if self._server is None:
            raise RuntimeError("the line is not open")
        port = self._server.sockets[0].getsockname()[1]
        return f"mongodb://127.0.0.1:{port}/?directConnection=true"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def hold(self, seconds: float) -> None:
        """Keep what some of the present connections send for so long; new ones are free."""
        chosen = [free for free in self._free.values() if self._chosen()]
        for free in chosen:
            free.clear()
        await asyncio.sleep(seconds)
        for free in chosen:
            free.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        free = asyncio.Event()
        free.set()
        self._connections.add(connection)
        self._free[connection] = free
        try:
            await self._serve(reader, writer, free)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(connection)
            del self._free[connection]
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, free: asyncio.Event) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self._port)
        back = asyncio.create_task(self._answers(answers, writer))
        try:
            while data := await reader.read(CHUNK_BYTES):
                if not free.is_set():
                    await free.wait()
                    self.held += 1
                requests.write(data)
                await requests.drain()
        finally:
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            asyncio.get_running_loop().call_later(LINGER_S, requests.close)

    async def _answers(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """MongoDB's side; when it ends the connection, so do we."""
        with suppress(ConnectionError):
            while data := await answers.read(CHUNK_BYTES):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
