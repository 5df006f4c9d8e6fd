"""Restate: one node of restate-server with its default settings (RocksDB, fsync on), its services in granian by h2c.

`linear4` runs four `ctx.run` steps, `sleeper` sleeps by `ctx.sleep`, `waiter` awaits a durable promise that a second
handler resolves. Accepting is `/send`, awaiting is `attach`, start and wait is a plain call.
"""

import asyncio
import json
import shutil
import socket
import tempfile
import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import restate

from tests.bench.meter import Pids
from tests.bench.peers.place import Process, beside, peers_folder, versions
from tests.bench.workload import Kind

INGRESS, ADMIN, NODE, SERVICE = 18080, 19070, 15122, 19080
NAMES = {"linear4": "Linear4", "sleeper": "Sleeper", "waiter": "Waiter"}

linear4 = restate.Workflow(NAMES["linear4"])
sleeper = restate.Workflow(NAMES["sleeper"])
waiter = restate.Workflow(NAMES["waiter"])


@linear4.main(name="run")
async def linear4_run(ctx: restate.WorkflowContext, request: dict) -> dict:
    out = {}
    for place in range(4):

        async def step(place: int = place) -> dict:
            if seconds := request["seconds"]:
                await asyncio.sleep(seconds)
            return {"i": place}

        out = await ctx.run_typed(f"s{place}", step)
    return out


@sleeper.main(name="run")
async def sleeper_run(ctx: restate.WorkflowContext, request: dict) -> dict:
    await ctx.sleep(timedelta(seconds=request["seconds"]))
    return {"ok": 1}


@waiter.main(name="run")
async def waiter_run(ctx: restate.WorkflowContext, request: dict) -> dict:
    return await ctx.promise("bell").value()


@waiter.handler(name="ring")
async def waiter_ring(ctx: restate.WorkflowSharedContext, request: dict) -> None:
    await ctx.promise("bell").resolve(request)


app = restate.app(services=[linear4, sleeper, waiter])


class Restate:
    """The engine."""

    name = "restate"
    settings = "server defaults, one node; one granian process, h2c"

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="peer-restate-")
        self._worker: Process | None = None
        self._kinds: dict[str, str] = {}
        self._registered = False

    def versions(self) -> dict[str, str]:
        return versions("restate-sdk", "granian") | {"restate-server": self._version}

    def pids(self) -> Pids:
        return {"server": self._server.pid} | ({"worker": self._worker.pid} if self._worker else {})

    async def open(self) -> None:
        package = peers_folder() / "node_modules/@restatedev/restate-server-linux-x64"
        self._version = json.loads((package / "package.json").read_text())["version"]
        here = {name: f"127.0.0.1:{port}" for name, port in (("INGRESS", INGRESS), ("ADMIN", ADMIN))}
        env = {f"RESTATE_{name}__BIND_ADDRESS": address for name, address in here.items()}
        command = [str(package / "bin/restate-server"), "--base-dir", self._folder, "--no-logo", "--node-name", "n1"]
        command += ["--listen-mode", "tcp", "--bind-address", f"127.0.0.1:{NODE}"]
        command += ["--advertised-address", f"http://127.0.0.1:{NODE}"]
        self._server = Process(command, env=env | {"RESTATE_DISABLE_TELEMETRY": "true"}).ready(_healthy)
        await asyncio.sleep(3)  # its partitions find their leaders
        self._client = aiohttp.ClientSession(f"http://127.0.0.1:{INGRESS}", connector=aiohttp.TCPConnector(limit=0))

    async def close(self) -> None:
        await self.kill_worker()
        await self._client.close()
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def start_worker(self, at_once: int) -> None:
        here = ["--host", "127.0.0.1", "--port", str(SERVICE)]
        options = ["--interface", "asginl", "--http", "2", "--workers", "1", *here]
        command = [beside("granian"), *options, f"{__spec__.name}:app"]
        process = Process(command, env={"PYTHONPATH": str(Path.cwd())})
        self._worker = await asyncio.to_thread(process.ready, _listens)
        if not self._registered:
            body = {"uri": f"http://127.0.0.1:{SERVICE}", "force": True}
            async with self._client.post(f"http://127.0.0.1:{ADMIN}/deployments", json=body) as answer:
                assert answer.status < 300, await answer.text()
            self._registered = True

    async def stop_worker(self) -> None:
        await self.kill_worker()  # granian waits for the server to hang up, which it does not

    async def kill_worker(self) -> None:
        if self._worker:
            await asyncio.to_thread(self._worker.kill)
            self._worker = None

    async def accept(self, kind: Kind, key: str, seconds: float = 0.0) -> None:
        self._kinds[key] = NAMES[kind]
        await self._call("POST", f"/{NAMES[kind]}/{key}/run/send", {"seconds": seconds})

    async def ended(self, keys: list[str]) -> None:
        await asyncio.gather(*(self._call("GET", f"/restate/workflow/{self._kinds[key]}/{key}/attach") for key in keys))

    async def run(self, key: str) -> None:
        await self._call("POST", f"/Linear4/{key}/run", {"seconds": 0.0})

    async def waiting(self, keys: list[str]) -> None:
        await asyncio.sleep(2)  # nobody says so, and all of them get there within a second

    async def ring(self, key: str) -> None:
        await self._call("POST", f"/Waiter/{key}/ring", {"x": 1})

    async def _call(self, method: str, path: str, body: Any = None) -> None:
        async with self._client.request(method, path, json=body) as answer:
            assert answer.status < 300, (answer.status, await answer.text())
            await answer.read()


def _healthy() -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{ADMIN}/health", timeout=1).status == 200
    except OSError:
        return False


def _listens() -> bool:
    try:
        socket.create_connection(("127.0.0.1", SERVICE), 0.5).close()
    except OSError:
        return False
    return True
