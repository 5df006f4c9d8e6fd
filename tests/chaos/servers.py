"""The run's own MongoDB and Valkey, which can be killed, paused and started again on their ports."""

import asyncio
import signal
import subprocess
from pathlib import Path

from app.embedded import Mongod, Valkey, last_words
from app.tether import tethered


class OftenCheckpointed(Mongod):
    """A MongoDB that has little to apply again after each kill, so that its outages stay short."""

    def command(self) -> list[str]:
        return [*super().command(), "--syncdelay", "3"]


class PrivateServer:
    """One server program and the process that runs it now. Nothing of it outlives the process that starts it."""

    def __init__(self, server: Mongod | Valkey, logs: Path) -> None:
        self.server = server
        self._log = logs / f"{server.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.server.url

    async def start(self) -> None:
        """Start it and wait until it can be used. Must be awaited on the main thread, which the server is tied to."""
        process = self._process = self._spawn()
        try:
            await asyncio.to_thread(self.server.make_ready, lambda: process.poll() is None)
        except Exception as error:
            raise RuntimeError(f"{error}\n{last_words(self._log)}") from error

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(
                tethered(self.server.command()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    async def kill(self) -> None:
        """kill -9."""
        self.send(signal.SIGKILL)
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)

    def send(self, how: signal.Signals) -> None:
        """Send a signal."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
