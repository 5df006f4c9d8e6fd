"""A scriptable HTTP server on loopback for tests: what each path answers, request by request, down to the raw bytes.

    async with ScriptedServer() as server:
        server.on("/live.m3u8", Reply(b"#EXTM3U…"), Reply(status=404))   # the last reply repeats
        …
        assert server.paths() == ["/live.m3u8"]

A reply's parts are written one by one; an `asyncio.Event` among them is waited for, `Cut` breaks the connection.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit


class Cut:
    """Ends the connection here."""


Part = bytes | asyncio.Event | type[Cut]


@dataclass(frozen=True)
class Request:
    """What a client sent. Header names are in lower case; `target` is the path with its query."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


@dataclass(frozen=True)
class Reply:
    """One answer. With `parts` the body is written piece by piece, and its length is told by closing."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    parts: Sequence[Part] | None = None
    raw: bool = False  # the parts are the whole answer, status line included


Answer = Reply | Callable[[Request], Reply]


def redirect(location: str, status: int = 302) -> Reply:
    return Reply(status=status, headers={"Location": location})


def ranged(content: bytes) -> Callable[[Request], Reply]:
    """A file that honours byte ranges."""

    def answer(request: Request) -> Reply:
        wanted = request.headers.get("range")
        if wanted is None:
            return Reply(content)
        first, last = wanted.removeprefix("bytes=").split("-")
        start, end = int(first), min(int(last), len(content) - 1)
        told = {"Content-Range": f"bytes {start}-{end}/{len(content)}"}
        return Reply(content[start : end + 1], status=206, headers=told)

    return answer


class ScriptedServer:
    """Answers each path from its script, 404 without one, and remembers every request and connection."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self._scripts: dict[str, list[Answer]] = {}
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    @property
    def place(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    def on(self, path: str, *answers: Answer) -> None:
        """Answer `path` with these in turn; the last one repeats."""
        self._scripts[path] = list(answers)

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._serve(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False when the connection ends."""
        request = await _read_request(reader)
        if request is None:
            return False
        self.requests.append(request)
        script = self._scripts.get(request.path, [Reply(status=404)])
        answer = script.pop(0) if len(script) > 1 else script[0]
        return await _write(answer(request) if callable(answer) else answer, writer)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, target, headers, body)


async def _write(reply: Reply, writer: asyncio.StreamWriter) -> bool:
    parts = reply.parts if reply.parts is not None else [reply.body]
    headers = dict(reply.headers)
    if reply.parts is None:
        headers.setdefault("Content-Length", str(len(reply.body)))
    else:
        headers["Connection"] = "close"
    if not reply.raw:
        told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {reply.status} scripted\r\n{told}\r\n".encode("latin-1"))
    for part in parts:
        if part is Cut:
            writer.transport.abort()
            return False
        if isinstance(part, asyncio.Event):
            await part.wait()
        elif isinstance(part, bytes):
            writer.write(part)
            await writer.drain()
    return reply.parts is None
