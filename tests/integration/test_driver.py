"""Calls of MongoDB that are cancelled, as those under a lost claim are, leave the client usable."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from kernel.driver import open_database, open_mongo
from kernel.errors import StoreUnavailable
from kernel.writes import wrapped
from tests.integration.line import Line

ROUNDS, CALLS = 20, 20
PATIENCE_S = 10.0
LEFT_SOCKETS = "ignore::pytest.PytestUnraisableExceptionWarning"  # PyMongo lets the collector close what it cancelled

pytestmark = [pytest.mark.filterwarnings(LEFT_SOCKETS), pytest.mark.parametrize("driver", ["motor", "pymongo"])]


@pytest.fixture
async def line(server_urls: tuple[str, str]) -> AsyncIterator[Line]:
    async with Line(server_urls[0]) as line:
        yield line


@pytest.fixture
async def records(line: Line, db, driver: str) -> AsyncIterator[Any]:
    """A collection over the line."""
    client = open_mongo(f"mongodb://{line.address}/?directConnection=true", driver=driver, timeout_s=1.0)
    yield open_database(client, db.name)["cancelled"]
    closing = client.close()
    if inspect.isawaitable(closing):
        async with asyncio.timeout(PATIENCE_S):
            await closing


async def call(records: Any) -> None:
    with suppress(StoreUnavailable):
        async with wrapped():
            await records.insert_one({})


async def cancel_all(calls: list[asyncio.Task[None]]) -> None:
    """Twice, as by the loss of the claim and by the end of its wave."""
    for _ in range(2):
        for task in calls:
            task.cancel()
        await asyncio.sleep(0)
    done, _ = await asyncio.wait(calls, timeout=PATIENCE_S)
    assert len(done) == len(calls)


async def test_while_they_queue_for_a_connection(records) -> None:
    for turns in range(ROUNDS):
        calls = [asyncio.create_task(call(records)) for _ in range(CALLS)]
        for _ in range(turns):  # each round reaches another place in the driver
            await asyncio.sleep(0)
        await cancel_all(calls)
        async with asyncio.timeout(PATIENCE_S):
            await records.find_one({})


async def test_while_mongodb_is_away(records, line: Line) -> None:
    await records.find_one({})
    await line.cut()
    for turns in range(ROUNDS // 2):
        calls = [asyncio.create_task(call(records)) for _ in range(CALLS)]
        await asyncio.sleep(0.001 * turns)
        await cancel_all(calls)
    await line.mend()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(StoreUnavailable):
                async with wrapped():
                    return await records.find_one({})
