"""Real MongoDB and Valkey for every test above `unit`; markers come from the folder."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.embedded import embedded_servers
from kernel.clock import Clock
from kernel.driver import open_database, open_mongo

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        item.add_marker(folder)


@pytest.fixture(scope="session")
def server_urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Addresses of a MongoDB and a Valkey: external ones where BATON_MONGO_URL and BATON_REDIS_URL name them."""
    external = os.environ.get("BATON_MONGO_URL"), os.environ.get("BATON_REDIS_URL")
    if all(external):
        yield external
        return
    with embedded_servers(tmp_path_factory.mktemp("servers")) as urls:
        yield urls.mongo, urls.redis


@pytest.fixture(scope="session")
async def database(server_urls: tuple[str, str]) -> AsyncIterator:
    client = open_mongo(server_urls[0], driver=os.environ.get("BATON_MONGO_DRIVER", "motor"))
    name = f"baton_test_{os.getpid()}"
    yield open_database(client, name)
    await client.drop_database(name)
    closing = client.close()
    if closing is not None:
        await closing


@pytest.fixture
async def db(database) -> AsyncIterator:
    """An empty database: emptied, not dropped, so that indexes stay."""
    yield database
    for name in await database.list_collection_names():
        await database[name].delete_many({})


@pytest.fixture
async def redis(server_urls: tuple[str, str]) -> AsyncIterator[Redis]:
    """A client whose keys under `prefix` are removed afterwards."""
    client = Redis.from_url(server_urls[1])
    yield client
    async for key in client.scan_iter(match=f"*{os.getpid()}*"):
        await client.delete(key)
    await client.aclose()


@pytest.fixture
def prefix() -> str:
    """The key prefix of this test worker."""
    return f"test{os.getpid()}"


@pytest.fixture
def clock() -> Clock:
    return Clock()
