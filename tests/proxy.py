"""A TCP proxy before MongoDB that loses answers: the write is done, and its writer does not learn it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class LossyProxy:
    """Forwards everything, but closes the connection instead of delivering an answer, `lose` times.

    Only answers to requests that hold `marker` are lost, so that the driver's own monitoring is left alone.
    """

    def __init__(self, port: int, marker: bytes = b"findAndModify") -> None:
        self._target = port
        self._marker = marker
        self.lose = 0
        self.lost = 0
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        marked = asyncio.Event()
        down = asyncio.create_task(self._answers(up_reader, writer, marked))
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if self._marker in data:
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
