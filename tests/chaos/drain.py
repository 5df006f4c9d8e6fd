"""Waits, within bounds, until everything that was accepted has ended; says what has not."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

from pymongo.errors import PyMongoError

from tests.chaos.transitions import ENDED

Document = dict[str, Any]

LOOK_EVERY_S = 0.5
SAY_EVERY_S = 5.0
CALM_LOOKS = 3
OPEN_OBJECTS: Document = {
    "$or": [
        {"state": "working"},
        {"state": "failed", "$expr": {"$lt": ["$round", "$rounds"]}},
        {"state": "canceled", "cleared": False},
        {"workflow_dispatch.status": {"$in": ["pending", "processing"]}},
    ]
}
OPEN_INSTANCES: Document = {"status": {"$nin": [*ENDED]}}


async def drained(database: Any, patience_s: float, say: Callable[[str], None]) -> bool:
    """Whether nothing was open any more, several looks in a row, before patience ended."""
    began = said = monotonic()
    calm = 0
    while calm < CALM_LOOKS:
        objects, instances = await _open(database)
        calm = calm + 1 if objects == instances == 0 else 0
        if monotonic() - said > SAY_EVERY_S:
            said = monotonic()
            say(f"  draining: {objects} objects and {instances} workflows are open")
        if monotonic() - began > patience_s:
            return False
        await asyncio.sleep(LOOK_EVERY_S)
    return True


async def _open(database: Any) -> tuple[int, int]:
    try:
        objects = await database["objects"].count_documents(OPEN_OBJECTS)
        return objects, await database["workflow_instances"].count_documents(OPEN_INSTANCES)
    except PyMongoError:
        return -1, -1


async def still_open(database: Any) -> list[str]:
    """What has not ended, with what it seems to wait for."""
    objects = await database["objects"].find(OPEN_OBJECTS).to_list(20)
    instances = await database["workflow_instances"].find(OPEN_INSTANCES).to_list(20)
    return [
        *(
            f"object {one['_id']} is {one['state']} in round {one['round']}: {one['workflow_dispatch']}"
            for one in objects
        ),
        *(f"workflow {_stands(one)}" for one in instances),
    ]


def _stands(one: Document) -> str:
    steps = {name: {k: v for k, v in step.items() if v not in (None, 0)} for name, step in one["steps"].items()}
    named = ("biz_key", "status", "round", "run", "claimable_time", "claim_token", "strikes", "parked_at", "error")
    return f"{ {name: one.get(name) for name in named} } {steps}"
