"""Serves an ASGI application until the process is asked to end: every role takes its signals and ends the same way."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator

import uvicorn
from litestar.types import ASGIApp

from app.binaries import ServerError


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals to `on_end_request`; uvicorn would raise them again and kill the process after its end."""
        yield


def on_end_request(stopping: asyncio.Event) -> None:
    """Set `stopping` at the first SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    for asked in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(asked, stopping.set)


async def serve(app: ASGIApp, host: str, port: int, stopping: asyncio.Event, *, grace_s: int = 1) -> None:
    """Answer requests until `stopping` is set; then open connections have `grace_s` to end. Port 0 takes a free one.

    Raises ServerError if the port is taken.
    """
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=grace_s, ws="none"
    )
    listener = listen(host, port)
    server = _Server(config)
    ending = asyncio.create_task(_end_when(stopping, server))
    try:
        await server.serve(sockets=[listener])
    finally:
        ending.cancel()
        listener.close()


async def _end_when(stopping: asyncio.Event, server: uvicorn.Server) -> None:
    await stopping.wait()
    server.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A bound socket. Raises ServerError with the address if that is not possible."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ServerError(f"Cannot listen on {host}:{port} ({error.strerror}). Choose another port.") from error
    return listener
