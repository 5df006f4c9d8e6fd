"""What a worker or producer of the run stands on: its connections, the kernel's parts, the ledger, the dispatcher.

All times are short, so that a run of minutes sees many take-overs; their proportions are those of the defaults.
"""

import inspect
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from kernel import Backoff, Clock, Definition, Limits, Parts, StaleRound, dispatch, intents, open_parts, workflow_id_of
from kernel.broker import open_redis
from kernel.candidates import Candidates
from kernel.dispatch import Dispatcher
from kernel.driver import open_database, open_mongo
from kernel.intents import Intents
from kernel.mutex import Mutex
from kernel.projections import Projections
from tests.chaos.ledger import Ledger, ObjectInput
from tests.chaos.requests import TENANTS
from tests.chaos.shapes import biz_key_of, definitions
from tests.chaos.witness import WitnessedPermits

DATABASE = PREFIX = "chaos"
PERMIT_LEASE_S = 4.0
MONGO_TIMEOUT_S = 0.7
REDIS_TIMEOUT_S = 0.4
LIMITS = {
    "narrow": Limits(1, 0),
    "brisk": Limits(0, 2),
    "wide": Limits(2, 0),
    **{f"tenant:{tenant}": Limits(1, 0) for tenant in TENANTS},
}


@dataclass(frozen=True)
class World:
    """One process's view of everything."""

    name: str
    database: Any
    parts: Parts
    projections: Projections
    mutex: Mutex
    ledger: Ledger
    dispatcher: Dispatcher
    definitions: list[Definition]

    async def clear(self, object_id: str, round: int) -> None:
        """The second half of a removal, which whoever comes may repeat."""
        await self.parts.publisher.supersede(workflow_id_of(biz_key_of(object_id)))
        await self.ledger.return_hold(object_id, round)
        await self.ledger.mark(object_id, cleared=True)

    async def clear_removed(self) -> None:
        """Finish the removals that others left half done."""
        for found in await self.ledger.find({"state": "canceled", "cleared": False}, 50):
            await self.clear(found["_id"], found["round"])


def hasten_dispatch() -> None:
    """The recovery's periods, which the kernel keeps as constants."""
    intents.FIRST_DUE_S = 3.0
    dispatch.LEASE_S = 4.0
    dispatch.SCAN_EVERY_S = 2.0
    dispatch.BACKOFF = Backoff(first_s=0.5, factor=2.0, longest_s=4.0)


@asynccontextmanager
async def opened(name: str) -> AsyncGenerator[World]:
    """The world of the process `name`, on the servers that the environment names."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    hasten_dispatch()
    driver = "motor" if int(name[-1]) % 2 else "pymongo"  # both, in turns
    client = open_mongo(os.environ["BATON_MONGO_URL"], driver=driver, timeout_s=MONGO_TIMEOUT_S)
    redis = open_redis(os.environ["BATON_REDIS_URL"], timeout_s=REDIS_TIMEOUT_S)
    try:
        yield _world(name, open_database(client, DATABASE), redis)
    finally:
        await redis.aclose()
        closing = client.close()
        if inspect.isawaitable(closing):
            await closing


def _world(name: str, database: Any, redis: Any) -> World:
    clock = Clock()
    ledger = Ledger(database, clock, name)
    parts = open_parts(database, redis, (), prefix=PREFIX, clock=clock, permit_lease_s=PERMIT_LEASE_S, limits=LIMITS)
    parts = replace(parts, permits=WitnessedPermits(redis, PREFIX, clock, PERMIT_LEASE_S, database))
    made = definitions(ledger, parts.publisher)
    parts.publisher.register(*(definition.plan for definition in made))
    mutex = Mutex(redis, PREFIX)
    dispatcher = _dispatcher(database, redis, parts, mutex, ledger)
    return World(name, database, parts, Projections(database, clock), mutex, ledger, dispatcher, made)


def _dispatcher(database: Any, redis: Any, parts: Parts, mutex: Mutex, ledger: Ledger) -> Dispatcher:
    async def rebuild(object_id: str, round: int) -> ObjectInput:
        await ledger.breach(f"the stored input of {object_id} is gone")
        raise StaleRound

    async def rejected(object_id: str, round: int, reason: str) -> None:
        await ledger.breach(f"round {round} of {object_id} was rejected: {reason}")

    return Dispatcher(
        Intents(database["objects"], parts.clock),
        parts.publisher,
        Candidates(redis, PREFIX, "objects", parts.clock),
        mutex,
        biz_key=biz_key_of,
        input_type=ObjectInput,
        rebuild=rebuild,
        rejected=rejected,
    )


async def ensure_indexes(world: World) -> None:
    """Make every index, once, before anybody works."""
    await world.parts.ensure_indexes()
    await world.projections.ensure_indexes()
    await Intents(world.database["objects"], world.parts.clock).ensure_indexes()
    await world.ledger.ensure_indexes()
