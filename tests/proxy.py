"""TCP proxies that do harm: before MongoDB one that loses answers, before the web one that cuts or freezes.

A write whose answer is lost is done, and its writer does not learn it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class LossyProxy:
    """Forwards everything, but closes the connection instead of delivering an answer, `lose` times.

    Only answers to requests that hold `marker` are lost, so that the driver's own monitoring is left alone.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self.marker = b"findAndModify"
        self.lose = 0
        self.lost = 0
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        marked = asyncio.Event()
        down = asyncio.create_task(self._answers(up_reader, writer, marked))
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if self.marker in data:
                    marked.set()
                up_writer.write(data)
                await up_writer.drain()
        down.cancel()
        await asyncio.gather(down, return_exceptions=True)
        for one in (up_writer, writer):
            one.close()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, marked: asyncio.Event) -> None:
        while data := await reader.read(65536):
            if marked.is_set() and self.lose > 0:
                self.lose -= 1
                self.lost += 1
                writer.transport.abort()
                return
            marked.clear()
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def lossy_proxy(port: int) -> AsyncIterator[LossyProxy]:
    """A proxy before the server on `port`."""
    proxy = LossyProxy(port)
    server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()


class HarmfulProxy:
    """Forwards everything. On demand it breaks all open connections, or lets them stand and delivers nothing more."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open: set[asyncio.StreamWriter] = set()
        self._flowing = _set_event()
        self.port = 0

    def cut(self) -> None:
        """Every open connection ends as if a cable had been pulled."""
        for writer in self._open:
            writer.transport.abort()

    def freeze(self) -> None:
        """Open connections stay open and silent for good, as after a laptop's sleep; new ones are well."""
        self._flowing.clear()
        self._flowing = _set_event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except ConnectionError:
            writer.transport.abort()
            return
        pair, flowing = {writer, up_writer}, self._flowing
        self._open |= pair
        there = asyncio.create_task(_forward(reader, up_writer, flowing))
        back = asyncio.create_task(_forward(up_reader, writer, flowing))
        await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        self._open -= pair
        for one in pair:
            one.close()


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            await flowing.wait()
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def harmful_proxy(port: int) -> AsyncIterator[HarmfulProxy]:
    """A proxy before the server on `port`, which may come and go."""
    proxy = HarmfulProxy(port)
    server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
