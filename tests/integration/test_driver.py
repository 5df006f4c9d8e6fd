"""Calls of MongoDB that are cancelled, as those under a lost claim are, leave the client usable."""

import asyncio
import inspect
from contextlib import suppress

import pytest

from kernel.driver import open_database, open_mongo
from kernel.errors import StoreUnavailable
from kernel.writes import wrapped

ROUNDS, CALLS = 30, 20
PATIENCE_S = 10.0
LEFT_SOCKETS = "ignore::pytest.PytestUnraisableExceptionWarning"  # PyMongo lets the collector close what it cancelled


@pytest.mark.filterwarnings(LEFT_SOCKETS)
@pytest.mark.parametrize("driver", ["motor", "pymongo"])
async def test_cancelled_calls_leave_no_lock_behind(server_urls, db, driver: str) -> None:
    client = open_mongo(server_urls[0], driver=driver)
    mine = open_database(client, db.name)["cancelled"]

    async def call() -> None:
        with suppress(StoreUnavailable):
            async with wrapped():
                await mine.insert_one({})

    for turns in range(ROUNDS):
        calls = [asyncio.create_task(call()) for _ in range(CALLS)]
        for _ in range(turns):  # each round reaches another place in the driver
            await asyncio.sleep(0)
        for _ in range(2):  # by the claim's loss, and by the end of the wave
            for task in calls:
                task.cancel()
            await asyncio.sleep(0)
        done, _ = await asyncio.wait(calls, timeout=PATIENCE_S)
        assert len(done) == CALLS
        async with asyncio.timeout(PATIENCE_S):
            await mine.find_one({})
    closing = client.close()
    if inspect.isawaitable(closing):
        await closing
