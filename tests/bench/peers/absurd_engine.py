"""Absurd on PostgreSQL. `python -m …absurd_engine URL AT_ONCE` is its asynchronous worker: one process, one connection.

Defaults, but for a poll every 10 ms (250) for W1 and a claim of 5 s (120) so that a killed worker's tasks come back.
Who waits for a result asks for it every 5 ms; callers are 32 threads with a connection each.
"""

import asyncio
import queue
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
from absurd_sdk import Absurd, AsyncAbsurd

from tests.bench.meter import Pids
from tests.bench.peers.place import Process, beside, postgres, postgres_version, python_process, until, versions
from tests.bench.workload import CALLERS, Kind

POLL_S, CLAIM_S, ASK_S = 0.01, 5, 0.005


def work(url: str, at_once: int) -> None:
    app = AsyncAbsurd(url, queue_name="q")

    @app.register_task("linear4")
    async def linear4(given: dict, ctx: Any) -> Any:
        out = None
        for place in range(4):

            async def step(place: int = place) -> dict:
                if given["seconds"]:
                    await asyncio.sleep(given["seconds"])
                return {"i": place}

            out = await ctx.step(f"s{place}", step)
        return out

    @app.register_task("sleeper")
    async def sleeper(given: dict, ctx: Any) -> dict:
        await ctx.sleep_for("z", given["seconds"])
        return {"ok": 1}

    @app.register_task("waiter")
    async def waiter(given: dict, ctx: Any) -> Any:
        return await ctx.await_event(f"bell:{given['key']}")

    print("ready", flush=True)
    asyncio.run(app.start_worker(concurrency=at_once, claim_timeout=CLAIM_S, poll_interval=POLL_S))


class AbsurdEngine:
    """The engine."""

    name = "absurd"
    settings = f"PostgreSQL's defaults; worker polls every {POLL_S * 1000:g} ms, claim {CLAIM_S} s"

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._worker: Process | None = None
        self._apps: queue.SimpleQueue[Absurd] = queue.SimpleQueue()

    def versions(self) -> dict[str, str]:
        return versions("absurd-sdk", "psycopg") | {"postgresql": postgres_version()}

    def pids(self) -> Pids:
        return {"server": self._server.pid} | ({"worker": self._worker.pid} if self._worker else {})

    async def open(self) -> None:
        self._url, self._server = self._stack.enter_context(postgres("absurd"))
        for command in (["init"], ["create-queue", "q"]):
            whole = [sys.executable, beside("absurdctl"), *command, "-d", self._url]
            await asyncio.to_thread(subprocess.run, whole, check=True)
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CALLERS))
        for _ in range(CALLERS):
            self._apps.put(Absurd(self._url, queue_name="q"))
        self._looking = self._stack.enter_context(psycopg.connect(self._url, autocommit=True))
        self._ended = 0

    async def close(self) -> None:
        await self.stop_worker()
        self._stack.close()

    async def start_worker(self, at_once: int) -> None:
        self._worker = await asyncio.to_thread(python_process, __spec__.name, self._url, str(at_once))

    async def stop_worker(self) -> None:
        if self._worker:
            await asyncio.to_thread(self._worker.stop)
            self._worker = None

    async def kill_worker(self) -> None:
        assert self._worker
        await asyncio.to_thread(self._worker.kill)
        self._worker = None

    async def accept(self, kind: Kind, key: str, seconds: float = 0.0) -> None:
        await self._spawn(kind, key, seconds)

    async def _spawn(self, kind: str, key: str, seconds: float) -> Any:
        given = {"key": key, "seconds": seconds}
        return await self._ask(lambda app: app.spawn(kind, given, queue="q", idempotency_key=key))

    async def ended(self, keys: list[str]) -> None:
        self._ended += len(keys)
        await until(lambda: self._count("completed") >= self._ended)

    async def run(self, key: str) -> None:
        task = await self._spawn("linear4", key, 0.0)
        while True:
            found = await self._ask(lambda app: app.fetch_task_result(task["task_id"], "q"))
            if found and found.state == "completed":
                self._ended += 1
                return
            await asyncio.sleep(ASK_S)

    async def waiting(self, keys: list[str]) -> None:
        await until(lambda: self._count("sleeping") >= len(keys))

    async def ring(self, key: str) -> None:
        await self._ask(lambda app: app.emit_event(f"bell:{key}", {"x": 1}, queue_name="q"))

    async def _ask(self, call: Callable[[Absurd], Any]) -> Any:
        return await asyncio.to_thread(self._with_app, call)

    def _with_app(self, call: Callable[[Absurd], Any]) -> Any:
        app = self._apps.get()
        try:
            return call(app)
        finally:
            self._apps.put(app)

    def _count(self, state: str) -> int:
        found = self._looking.execute("select count(*) from absurd.t_q where state = %s", (state,)).fetchone()
        return found[0] if found else 0


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
