"""A private MongoDB (a replica set of one) and a private Valkey on loopback ports, kept in a folder and ended with us.

Nothing of them outlives the process that starts them: the kernel kills them with it. What MongoDB holds survives that
and any restart, also on another port. This module drives MongoDB with PyMongo directly: it is a boot step, before
there is anything for the kernel's driver to open.
"""

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from app.binaries import ServerError, explain, mongod_binary, valkey_binary
from app.folder_lock import FolderLock
from app.ports import answers, free_port
from app.settings import Settings, load
from app.tether import tethered

REPLICA_SET = "baton"
NOT_YET_INITIALIZED = 94
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Urls:
    """Where the two servers answer."""

    mongo: str
    redis: str


class Server(Protocol):
    """A private server, described: how to start it, and how to bring it to where it can be used."""

    name: str
    port: int

    @property
    def url(self) -> str: ...
    def command(self) -> list[str]: ...
    def make_ready(self, alive: Callable[[], bool]) -> None: ...


class Mongod:
    """MongoDB as a replica set of one member, with its data in `<folder>/mongo`."""

    name = "mongo"

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.data = folder / "mongo"
        self.binary = mongod_binary(folder / "bin")
        self.port = port or free_port()

    @property
    def host(self) -> str:
        """`host:port`, as the replica set's configuration names the member."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Address for clients. Through the set's name they wait for a primary while mongod is being restarted."""
        return f"mongodb://{self.host}/?replicaSet={REPLICA_SET}"

    def command(self) -> list[str]:
        """The command line; makes the data folder."""
        self.data.mkdir(parents=True, exist_ok=True)
        options = {
            "--dbpath": str(self.data),
            "--port": str(self.port),
            "--bind_ip": "127.0.0.1",
            "--replSet": REPLICA_SET,
            # A server for one machine: small cache, oplog and journal files, no compression over loopback.
            "--wiredTigerCacheSizeGB": "0.25",
            "--oplogSize": "128",
            "--wiredTigerEngineConfigString": "log=(file_max=32MB,prealloc=false)",
            "--networkMessageCompressors": "disabled",
            "--setParameter": "diagnosticDataCollectionEnabled=false",
        }
        pairs = [word for option in options.items() for word in option]
        return [str(self.binary), *pairs, "--nounixsocket", "--quiet"]

    def make_ready(self, alive: Callable[[], bool]) -> None:
        """Wait until the set has its primary here, creating or re-addressing the set as needed. Raises ServerError."""
        _until(lambda: answers(self.port), alive, self.name)
        with MongoClient("127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=2000) as client:
            _until(lambda: self._is_primary(client), alive, self.name)

    def _is_primary(self, client: MongoClient[dict[str, Any]]) -> bool:
        """One look, and one act if one is due. A fault means: look again."""
        try:
            if client.admin.command("hello").get("isWritablePrimary"):
                return True
            self._configure(client)
        except PyMongoError:
            return False
        return False

    def _configure(self, client: MongoClient[dict[str, Any]]) -> None:
        """Create the set for new data. After a change of port its member is not us; only force takes our address."""
        try:
            config = client.admin.command("replSetGetConfig")["config"]
        except OperationFailure as error:
            if error.code != NOT_YET_INITIALIZED:
                raise
            config = {"_id": REPLICA_SET, "members": [{"_id": 0, "host": self.host}]}
            client.admin.command("replSetInitiate", config)
            return
        if config["members"][0]["host"] != self.host:
            config["members"][0]["host"] = self.host
            client.admin.command("replSetReconfig", config, force=True)


class Valkey:
    """Valkey with nothing written to disk: all it holds only speeds things up and is rebuilt from MongoDB."""

    name = "valkey"

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.data = folder / "valkey"
        self.binary = valkey_binary(folder / "bin")
        self.port = port or free_port()

    @property
    def url(self) -> str:
        """Address for clients."""
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        """The command line; makes the working folder."""
        self.data.mkdir(parents=True, exist_ok=True)
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.data)]
        # An old copy of the queues would be worse than none, and snapshots fork.
        memory_only = ["--save", "", "--appendonly", "no"]
        return [str(self.binary), *place, *memory_only]

    def make_ready(self, alive: Callable[[], bool]) -> None:
        """Wait until it answers PING. Raises ServerError."""
        _until(self._pongs, alive, self.name)

    def _pongs(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def _until(done: Callable[[], bool], alive: Callable[[], bool], name: str) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not done():
        if not alive():
            raise ServerError(f"{name} ended while it was starting.")
        if time.monotonic() > deadline:
            raise ServerError(f"{name} runs but was not ready within {READY_TIMEOUT_S:.0f} s.")
        time.sleep(LOOK_EVERY_S)


@contextmanager
def embedded_servers(folder: Path, settings: Settings | None = None) -> Iterator[Urls]:
    """Addresses of a MongoDB and a Valkey, for as long as the context lasts; data is kept under `folder`.

    An external address in the settings (BATON_MONGO_URL, BATON_REDIS_URL) wins over a private server. Must be entered
    in the main thread, since the servers end with the thread that starts them. Raises ServerError, or FolderInUse.
    """
    settings = settings or load()
    with ExitStack() as stack:
        lock = stack.enter_context(FolderLock(folder))
        servers: list[Server] = []
        if not settings.mongo_url:
            servers.append(Mongod(folder))
        if not settings.redis_url:
            servers.append(Valkey(folder))
        running = [stack.enter_context(_started(server, folder / "logs", lock.fd)) for server in servers]
        for process in running:
            process.make_ready()
        urls = {server.name: server.url for server in servers}
        yield Urls(urls.get("mongo", settings.mongo_url), urls.get("valkey", settings.redis_url))


@dataclass(frozen=True)
class _Running:
    server: Server
    process: subprocess.Popen[bytes]
    log: Path

    def make_ready(self) -> None:
        try:
            self.server.make_ready(lambda: self.process.poll() is None)
        except ServerError as error:
            raise ServerError(f"{error}\n{last_words(self.log)}") from None


@contextmanager
def _started(server: Server, logs: Path, lock_fd: int) -> Iterator[_Running]:
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("Private servers end with the thread that starts them: start them in the main thread.")
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{server.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            tethered(server.command()),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(lock_fd,),
            start_new_session=True,  # Ctrl-C is for us; we end them in order
        )
    try:
        yield _Running(server, process, log)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_words(log: Path, lines: int = 8) -> str:
    """The end of a server's log, with advice where the fault is a known one. Lines of MongoDB's JSON are shortened."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    tail = "\n".join(f"  {_shortened(line)}" for line in text.splitlines()[-lines:])
    return explain(f"Last lines of {log}:\n{tail or '  (it is empty)'}")


def _shortened(line: str) -> str:
    try:
        entry = json.loads(line)
        attributes = json.dumps(entry["attr"], ensure_ascii=False) if "attr" in entry else ""
        return f"[{entry['s']}] {entry['msg']} {attributes}"[:400].rstrip()
    except (ValueError, KeyError, TypeError):
        return line[:400]
