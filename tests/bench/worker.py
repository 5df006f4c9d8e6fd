"""Our worker as a process of its own, until SIGTERM: what `baton worker` runs, with the benchmark's definitions."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from kernel import Parts, open_parts
from kernel.broker import open_redis
from kernel.driver import open_database, open_mongo
from kernel.mutex import Mutex
from kernel.projections import Projections
from kernel.worker import Pace, Worker
from tests.bench import profiled, shapes

PREFIX = "bench"


class Place(msgspec.Struct, frozen=True):
    """Where the servers are, and how the worker is set; `profile` is a file for what it spent its CPU on."""

    mongo: str
    redis: str
    driver: str = "motor"
    lease_s: float = 15.0
    slots: int = 32
    profile: str = ""


@dataclass(frozen=True)
class Opened:
    """The kernel's parts, and what they are opened over."""

    parts: Parts
    database: Any
    redis: Any


@asynccontextmanager
async def opened(place: Place) -> AsyncGenerator[Opened]:
    client, redis = open_mongo(place.mongo, driver=place.driver), open_redis(place.redis)
    database = open_database(client, PREFIX)
    try:
        yield Opened(open_parts(database, redis, shapes.plans(), prefix=PREFIX), database, redis)
    finally:
        await redis.aclose()
        if (closing := client.close()) is not None:  # PyMongo Async's is awaited, Motor's is not
            await closing


def made(place: Place, ground: Opened) -> Worker:
    parts = ground.parts
    projections, mutex = Projections(ground.database, parts.clock), Mutex(ground.redis, PREFIX)
    definitions = shapes.definitions(parts.publisher)
    return Worker("bench", parts, definitions, projections, mutex, slots=place.slots, pace=Pace(lease_s=place.lease_s))


async def run(place: Place) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with opened(place) as ground:
        worker = made(place, ground)
        working = asyncio.create_task(worker.run())
        print("ready", flush=True)
        await stopping.wait()
        worker.stop()
        await working


if __name__ == "__main__":
    given = msgspec.json.decode(sys.argv[1], type=Place)
    with profiled.into(given.profile):
        asyncio.run(run(given))
