"""Processes of a peer: started with their output in a file, ended with us, and a PostgreSQL of one's own."""

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import psutil

PG = Path("/usr/lib/postgresql")
PG_PORT, PG_USER = 5544, "postgres"


def peers_folder() -> Path:
    """Where `make bench-peers` has put them."""
    return Path(os.environ.get("PEERS", ".baton/peers")).resolve()


def beside(program: str) -> str:
    """A program of this Python's environment."""
    return str(Path(sys.executable).parent / program)


def versions(*names: str) -> dict[str, str]:
    return {name: version(name) for name in names}


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Process:
    """One program of a peer, and what it has said."""

    def __init__(self, command: list[str], *, user: str | None = None, env: dict[str, str] | None = None) -> None:
        self._log = tempfile.NamedTemporaryFile(prefix="peer-", suffix=".log")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            command,
            stdout=self._log,
            stderr=self._log,
            env=os.environ | (env or {}),
            cwd="/" if user else None,
            user=user,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        self.pid = self._process.pid

    def said(self) -> str:
        return Path(self._log.name).read_text(errors="replace")

    def ready(self, done: Callable[[], bool], within_s: float = 30.0) -> "Process":
        """Itself, once it can be used."""
        end = time.monotonic() + within_s
        while not done():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self._process.args} is not ready:\n{self.said()[-2000:]}")
            time.sleep(0.02)
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self._process.send_signal(how)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """kill -9, with all its children."""
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self.pid).children(recursive=True):
                child.kill()
        self._process.kill()
        self._process.wait()


def python_process(module: str, *args: str) -> Process:
    """A worker of a peer, once it has said that it is ready."""
    process = Process([sys.executable, "-m", module, *args])
    return process.ready(lambda: "ready" in process.said())


async def until(done: Callable[[], bool], every_s: float = 0.02) -> None:
    """Ask again and again until it is so."""
    while True:
        if await asyncio.to_thread(done):
            return
        await asyncio.sleep(every_s)


@contextmanager
def postgres(database: str) -> Iterator[tuple[str, Process]]:
    """Address of an empty database of a new cluster with PostgreSQL's own settings, and the server's process."""
    import psycopg

    programs = sorted(PG.glob("*/bin"))[-1]
    folder = Path(tempfile.mkdtemp(prefix="peer-pg-"))
    shutil.chown(folder, PG_USER, PG_USER)
    begin = [programs / "initdb", "-D", folder, "-U", PG_USER, "-A", "trust"]
    subprocess.run(begin, user=PG_USER, check=True, stdout=subprocess.DEVNULL, cwd="/")
    here = [f"-c{name}" for name in ("listen_addresses=127.0.0.1", f"unix_socket_directories={folder}")]
    server = Process([str(programs / "postgres"), "-D", str(folder), "-p", str(PG_PORT), *here], user=PG_USER)
    asked = [programs / "pg_isready", "-h", "127.0.0.1", "-p", str(PG_PORT)]
    try:
        server.ready(lambda: subprocess.run(asked, stdout=subprocess.DEVNULL).returncode == 0)
        address = f"postgresql://{PG_USER}@127.0.0.1:{PG_PORT}"
        with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
            connection.execute(f"create database {database}".encode())
        yield f"{address}/{database}", server
    finally:
        server.stop(signal.SIGINT)
        shutil.rmtree(folder, ignore_errors=True)


def postgres_version() -> str:
    return sorted(PG.glob("*/bin"))[-1].parent.name
