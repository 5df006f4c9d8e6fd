"""A line to a server that can be cut and mended: an outage of Redis for one client, without stopping Redis."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self, TypeVar
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from kernel.errors import BrokerUnavailable

T = TypeVar("T")


class Line:
    """Forwards a local port to the server of `url` while it is whole."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._clients: list[Redis] = []
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            await client.aclose()
        await self.cut()

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """End every connection and refuse new ones."""
        assert self._server
        self._server.close()
        for end in self._ends:
            end.transport.abort()
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        """Host and port of the near end."""
        return f"127.0.0.1:{self._port}"

    def client(self) -> Redis:
        """A client over this line that reports a fault at once."""
        url = f"redis://{self.address}{self._target.path}"
        client = Redis.from_url(url, socket_timeout=2, retry=Retry(NoBackoff(), 0))
        self._clients.append(client)
        return client

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        ends = {writer, far_writer}
        self._ends |= ends
        try:
            await asyncio.gather(_forward(reader, far_writer), _forward(far_reader, writer))
        finally:
            self._ends -= ends


async def once_back(call: Callable[[], Awaitable[T]]) -> T:
    """The result of `call`, tried again for as long as Redis counts as away."""
    while True:
        try:
            return await call()
        except BrokerUnavailable:
            await asyncio.sleep(0.02)


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
