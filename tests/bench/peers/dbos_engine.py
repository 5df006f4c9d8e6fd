"""DBOS Transact on PostgreSQL. `python -m …dbos_engine URL AT_ONCE` is its worker, with synchronous functions (faster).

Start and wait (`closed32`, W1b) happens in the worker's own process, the library's usual way: a caller sends the
workflow's id by a socket and is told when it has ended. Everything else goes through a queue, polled every 50 ms.
"""

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import sqlalchemy
from dbos import DBOS, DBOSClient, SetWorkflowID

from tests.bench.meter import Pids
from tests.bench.peers.place import Process, postgres, postgres_version, python_process, until, versions
from tests.bench.workload import CALLERS, Kind

PORT = 15544
POLL_S = 0.05


@DBOS.step()
def step(place: int, seconds: float) -> dict:
    if seconds:
        time.sleep(seconds)
    return {"i": place}


@DBOS.workflow()
def linear4(seconds: float) -> dict:
    out = {}
    for place in range(4):
        out = step(place, seconds)
    return out


@DBOS.workflow()
async def sleeper(seconds: float) -> dict:
    await DBOS.sleep_async(seconds)
    return {"ok": 1}


@DBOS.workflow()
async def waiter(seconds: float) -> dict:
    return await DBOS.recv_async("bell", timeout_seconds=600)


def direct(key: str) -> None:
    with SetWorkflowID(key):
        linear4(0.0)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Each line is the id of a workflow to run here."""
    while line := await reader.readline():
        await asyncio.to_thread(direct, line.decode().strip())
        writer.write(line)
        await writer.drain()


async def serve() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CALLERS))
    server = await asyncio.start_server(answer, "127.0.0.1", PORT)
    print("ready", flush=True)
    await server.serve_forever()


def work(url: str, at_once: int) -> None:
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "application_version": "v1"})
    DBOS.launch()
    limit = at_once if at_once <= CALLERS else None  # sleeping and waiting ones count, too
    DBOS.register_queue("q", worker_concurrency=limit, polling_interval_sec=POLL_S, on_conflict="always_update")
    asyncio.run(serve())


class Dbos:
    """The engine."""

    name = "dbos"
    settings = "PostgreSQL's defaults; queue polled every 50 ms; closed32 and W1b in the worker's own process"

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._worker: Process | None = None
        self._lines: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    def versions(self) -> dict[str, str]:
        return versions("dbos", "SQLAlchemy", "psycopg") | {"postgresql": postgres_version()}

    def pids(self) -> Pids:
        return {"server": self._server.pid} | ({"worker": self._worker.pid} if self._worker else {})

    async def open(self) -> None:
        self._url, self._server = self._stack.enter_context(postgres("dbos"))
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CALLERS))
        await self.start_worker(CALLERS)  # it makes the tables
        self._client = DBOSClient(system_database_url=self._url, system_database_pool_size=CALLERS)
        self._engine = sqlalchemy.create_engine(self._url.replace("postgresql:", "postgresql+psycopg:"))
        await self.stop_worker()

    async def close(self) -> None:
        await self.stop_worker()
        self._client.destroy()
        self._engine.dispose()
        self._stack.close()

    async def start_worker(self, at_once: int) -> None:
        args = (__spec__.name, self._url, str(at_once))
        self._worker = await asyncio.to_thread(python_process, *args)
        for _ in range(CALLERS):
            self._lines.put_nowait(await asyncio.open_connection("127.0.0.1", PORT))

    async def stop_worker(self) -> None:
        await self.kill_worker()  # it has nothing under way

    async def kill_worker(self) -> None:
        while not self._lines.empty():
            self._lines.get_nowait()[1].close()
        if self._worker:
            await asyncio.to_thread(self._worker.kill)
            self._worker = None

    async def accept(self, kind: Kind, key: str, seconds: float = 0.0) -> None:
        options = {"queue_name": "q", "workflow_name": kind, "workflow_id": key}
        await asyncio.to_thread(self._client.enqueue, options, seconds)

    async def ended(self, keys: list[str]) -> None:
        await until(lambda: self._count(keys, "status = 'SUCCESS'") >= len(keys))

    async def run(self, key: str) -> None:
        reader, writer = line = await self._lines.get()
        writer.write(f"{key}\n".encode())
        await reader.readline()
        self._lines.put_nowait(line)

    async def waiting(self, keys: list[str]) -> None:
        await until(lambda: self._count(keys, "status <> 'ENQUEUED'") >= len(keys))
        await asyncio.sleep(2)  # from begun to waiting

    async def ring(self, key: str) -> None:
        await asyncio.to_thread(self._client.send, key, {"x": 1}, "bell")

    def _count(self, keys: list[str], condition: str) -> int:
        like = f"{keys[0].rpartition('-')[0]}-%"
        text = f"select count(*) from dbos.workflow_status where workflow_uuid like '{like}' and {condition}"
        with self._engine.connect() as connection:
            return connection.execute(sqlalchemy.text(text)).scalar() or 0


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
