"""The documentation's examples, run as they are written."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from kernel import workflow_id_of
from kernel.projections import Projections
from tests.kernel_kit import eventually

PAGE = Path(__file__).parents[2] / "docs" / "kernel.md"
LONGEST_WORKFLOW = 40


class PostOffice:
    """Sends one parcel for one key, however often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.parcels: dict[str, str] = {}

    async def send(self, order_id: str, *, idempotency_key: str) -> str:
        self.asked += 1
        return self.parcels.setdefault(idempotency_key, f"parcel for {order_id}")


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """What all blocks of the page, one after the other, define."""
    names: dict[str, Any] = {}
    for block in blocks():
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_a_workflow_is_short() -> None:
    written = [line for line in blocks()[0].splitlines() if line.strip()]
    assert len(written) < LONGEST_WORKFLOW


async def test_its_own_test_passes(page: dict[str, Any], db: Any, redis: Any, prefix: str) -> None:
    post = PostOffice()
    definition = page["order_workflow"](db["orders"], post)
    parts, _ = page["join"](db, redis, definition, prefix)
    await parts.ensure_indexes()
    projections = Projections(db, parts.clock)
    await page["test_a_worker_that_dies_with_the_parcel_in_its_hands"](parts, projections, definition, db["orders"])
    assert (post.asked, len(post.parcels)) == (2, 1)


async def test_a_worker_runs_it_from_acceptance_to_the_end(
    page: dict[str, Any], db: Any, redis: Any, prefix: str
) -> None:
    post, stopping = PostOffice(), asyncio.Event()
    definition = page["order_workflow"](db["orders"], post)
    parts, worker = page["join"](db, redis, definition, prefix)
    await db["orders"].insert_one({"_id": "8", "round": 1, "paid": False, "state": "new"})
    working = asyncio.create_task(page["work"](worker, stopping))
    await page["accept"](parts, "8")
    await until(parts, "8", "waiting")
    await page["paid"](parts, db["orders"], "8", 900)
    await until(parts, "8", "completed")
    stopping.set()
    await working
    assert (await db["orders"].find_one({"_id": "8"}))["parcel"] == "parcel for 8"


async def until(parts: Any, order_id: str, status: str) -> None:
    await eventually(parts.instances, workflow_id_of(f"order:{order_id}"), lambda found: found.status == status)
