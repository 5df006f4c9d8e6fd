"""Processes that are kept alive: replaced at once on their ports, given up when hopeless, ended in bounded time."""

import asyncio
import inspect
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from app.demo_parts import worker_names
from app.embedded import Mongod
from app.folder_lock import FolderLock
from app.ports import answers, free_port
from app.supervisor import HOPELESS, Kept, Part, Supervisor
from kernel.driver import open_database, open_mongo
from tests.integration.stand_in import stand_in
from tests.integration.waiting import until


class Changes:
    """Counts what a supervisor reports, and lets a test wait for the next."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self.said: list[str] = []

    def note(self) -> None:
        self.happened.set()

    async def next(self) -> None:
        async with asyncio.timeout(30):
            await self.happened.wait()
        self.happened.clear()


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
async def supervisor(tmp_path: Path, changes: Changes) -> AsyncIterator[Supervisor]:
    with FolderLock(tmp_path) as lock:
        made = Supervisor(tmp_path, changes.said.append, changes.note, lock.fd)
        yield made
        await made.stop({kept.part.role for kept in made.kept}, timeout_s=10)
        await made.close()


def part(role: str, *options: str, names: Callable[[], str] | None = None) -> Part:
    port = free_port()
    return Part(role, port, stand_in(port, *options), names or (lambda: role))


async def until_it_answers(port: int) -> None:
    await asyncio.to_thread(until, lambda: answers(port))


async def test_a_killed_part_comes_back_on_its_port(supervisor: Supervisor, changes: Changes) -> None:
    kept = await supervisor.start(part("asr"))
    await until_it_answers(kept.part.port)
    killed = kept.process.pid
    kept.process.kill()
    await changes.next()
    await until_it_answers(kept.part.port)
    assert kept.process.pid != killed
    assert kept.name == "asr"
    assert "asr ended (SIGKILL)" in changes.said[0]


async def test_a_replaced_worker_has_a_name_of_its_own(supervisor: Supervisor, changes: Changes) -> None:
    names = worker_names()
    workers = [await supervisor.start(part("worker", names=names)) for _ in range(2)]
    workers[0].process.kill()
    await changes.next()
    assert [worker.name for worker in workers] == ["worker-3", "worker-2"]
    assert supervisor.log_of("worker-3").exists()


async def test_a_part_that_cannot_start_is_given_up_by_those_who_wait_for_it(
    supervisor: Supervisor, changes: Changes
) -> None:
    kept = await supervisor.start(Part("writer", 1, ["false"], lambda: "writer"))
    while not kept.hopeless:
        await changes.next()
    assert kept.failures == HOPELESS


async def test_pauses_grow_up_to_a_bound(supervisor: Supervisor) -> None:
    kept = await supervisor.start(part("web"))
    pauses = [Kept(kept.part, "web", kept.process, failures=failures).pause_s for failures in range(9)]
    assert pauses == [0, 0, 0.5, 1, 2, 4, 8, 15, 15]


async def test_a_part_that_ignores_the_request_to_end_is_killed(supervisor: Supervisor, changes: Changes) -> None:
    kept = await supervisor.start(part("web", "deaf"))
    await until_it_answers(kept.part.port)
    await supervisor.stop({"web"}, timeout_s=0.1)
    assert kept.process.returncode == -signal.SIGKILL
    assert supervisor.kept == []
    assert changes.said == []


async def test_a_client_goes_on_after_mongod_was_killed(
    supervisor: Supervisor, tmp_path: Path, changes: Changes
) -> None:
    mongod = Mongod(tmp_path)
    kept = await supervisor.start(Part("mongo", mongod.port, mongod.command(), lambda: "mongo"))
    await asyncio.to_thread(mongod.make_ready, lambda: True)
    client = open_mongo(mongod.url, timeout_s=20)
    notes = open_database(client, "kept")["notes"]
    await notes.insert_one({"_id": "before"})
    kept.process.kill()
    await changes.next()
    await notes.insert_one({"_id": "after"})
    assert [note["_id"] for note in await notes.find().to_list(10)] == ["before", "after"]
    closing = client.close()
    if inspect.isawaitable(closing):
        await closing
