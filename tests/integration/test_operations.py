"""What operators do to an installation: a new version beside the old one, a backup of the running database."""

import asyncio
import inspect
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from app.embedded import Urls, embedded_servers
from app.settings import Settings
from kernel import Clock, Definition, Status, Step, StepContext, open_parts, workflow_id_of
from kernel.driver import Database, open_database, open_mongo
from kernel.worker import Pace, Worker
from tests.kernel_kit import Kit, eventually, open_kit
from tests.shapes import ObjectInput

QUICK = Pace(lease_s=2.0, poll_s=0.1, scan_s=0.2, beat_s=0.2, recover_s=0.5)


async def work(ctx: StepContext) -> dict[str, Any]:
    return {"step": ctx.step}


OLD = Definition("deployed", (Step("one", work), Step("two", work)))
NEW = Definition("deployed", (Step("one", work), Step("between", work), Step("two", work)))


class Said(logging.Filter):
    """Waits for a line of the worker's log."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text, self._event = text, asyncio.Event()
        logging.getLogger("kernel.worker").addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        if self._text in record.getMessage():
            self._event.set()
        return True

    async def wait(self) -> None:
        await self._event.wait()
        logging.getLogger("kernel.worker").removeFilter(self)


class Version:
    """One version of a program: its publisher and its worker know its own definition only."""

    def __init__(self, kit: Kit, redis: Redis, prefix: str, definition: Definition) -> None:
        db = kit.business.db
        self.parts = open_parts(db, redis, [definition.plan], prefix=prefix, clock=kit.parts.clock)
        self.worker = Worker(
            definition.plan.fingerprint[:6], self.parts, [definition], kit.projections, kit.mutex, pace=QUICK
        )

    async def start(self, key: str) -> str:
        await self.parts.publisher.start_or_resume("deployed", key, ObjectInput(key, 1), round=1, priority=1)
        return workflow_id_of(key)

    async def completed(self, workflow_id: str) -> list[str]:
        """The steps of the workflow, once it is completed."""
        found = await eventually(self.parts.instances, workflow_id, lambda found: found.status is Status.COMPLETED)
        return list(found.step_order)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.worker.run())
        yield
        self.worker.stop()
        await task


async def test_old_work_waits_for_a_worker_that_can_read_it_and_nothing_fails(
    kit: Kit, redis: Redis, prefix: str
) -> None:
    put_off = Said("no compatible worker here")
    old, new = Version(kit, redis, prefix, OLD), Version(kit, redis, prefix, NEW)
    begun = await old.start("begun")
    async with new.at_work():
        fresh = await new.start("fresh")
        assert await new.completed(fresh) == ["one", "between", "two"]
        await put_off.wait()
        waiting = await old.parts.instances.get(begun)
        assert waiting is not None
        assert (waiting.status, waiting.claim_token, waiting.steps["one"].attempt) == (Status.RUNNING, "", 0)
        async with old.at_work():
            assert await old.completed(begun) == ["one", "two"]
    failed = await kit.business.db["workflow_instances"].count_documents({"status": {"$ne": Status.COMPLETED}})
    assert failed == 0


@asynccontextmanager
async def opened(urls: Urls) -> AsyncIterator[tuple[Database, Redis]]:
    client, redis = open_mongo(urls.mongo, driver="pymongo"), Redis.from_url(urls.redis)
    yield open_database(client, "baton"), redis
    await redis.aclose()
    closing = client.close()
    if inspect.isawaitable(closing):
        await closing


async def test_work_goes_on_from_a_copy_of_the_running_database_and_an_empty_redis(tmp_path: Path) -> None:
    taken, restored = tmp_path / "running", tmp_path / "restored"
    with embedded_servers(taken, Settings()) as urls:
        async with opened(urls) as (db, redis):
            kit = await open_kit(db, redis, "backup", Clock())
            workflow_id = (await kit.start("sleep")).instance.workflow_id
            await kit.fleet.claim_and_run(workflow_id)
            await db.client.admin.command({"fsync": 1, "lock": True})
            shutil.copytree(taken / "mongo", restored / "mongo")
            await db.client.admin.command({"fsyncUnlock": 1})
            assert (await kit.run("sleep")).status is Status.COMPLETED, "the original goes on"
    with embedded_servers(restored, Settings()) as urls:
        async with opened(urls) as (db, redis):
            kit = await open_kit(db, redis, "backup", Clock())
            found = await kit.parts.instances.get(workflow_id)
            assert found is not None
            assert found.status is Status.WAITING, "as it stood when the copy was taken"
            assert (await kit.run("sleep")).status is Status.COMPLETED
