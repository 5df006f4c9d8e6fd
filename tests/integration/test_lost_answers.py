"""Writes whose answer was lost: applied once, and their writer learns which of the three it was."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from time import monotonic
from urllib.parse import urlsplit

import pytest

from kernel import ClaimLost, Clock, StepStatus
from kernel.claims import Claim
from kernel.commits import Commits
from kernel.driver import open_database, open_mongo
from kernel.store import Store
from tests.kernel_kit import Kit
from tests.proxy import LossyProxy, lossy_proxy

DRIVERS_OWN_TRIES = 2  # the driver repeats a retryable write once by itself


@pytest.fixture
async def lossy(server_urls, db) -> AsyncIterator[tuple[LossyProxy, Store]]:
    port = urlsplit(server_urls[0]).port
    async with lossy_proxy(port) as proxy:
        client = open_mongo(f"mongodb://127.0.0.1:{proxy.port}/?directConnection=true")
        database = open_database(client, db.name)
        yield proxy, Store(database, Commits(database["workflow_instances"]), Clock())
        closing = client.close()
        if inspect.isawaitable(closing):
            await closing


async def claimed(kit: Kit, object_id: str = "a", lease_s: float = 15.0) -> Claim:
    started = await kit.start("linear", object_id)
    plan = kit.definitions[0].plan
    sent_at = monotonic()
    served = [("linear", plan.fingerprint)]
    found = await kit.parts.instances.claim(started.instance.workflow_id, served, "t1", "A", lease_s)
    return Claim(found, plan, lease_s, sent_at)


@pytest.mark.parametrize("lost", [1, DRIVERS_OWN_TRIES, DRIVERS_OWN_TRIES + 1])
async def test_a_write_that_applied_is_not_repeated(kit: Kit, lossy, lost: int) -> None:
    proxy, store = lossy
    claim = await claimed(kit)
    proxy.lose = lost
    await store.start_step(claim, "one")
    assert proxy.lost == lost
    stored = await kit.parts.instances.get(claim.instance.workflow_id)
    assert stored == claim.instance
    assert (stored.steps["one"].status, stored.steps["one"].attempt) == (StepStatus.RUNNING, 1)


async def test_of_a_batch_whose_answer_was_lost_nothing_is_repeated(kit: Kit, lossy) -> None:
    proxy, store = lossy
    claims = [await claimed(kit, object_id) for object_id in "abcdef"]
    proxy.marker, proxy.lose = b"\x02update\x00", DRIVERS_OWN_TRIES
    await asyncio.gather(*(store.start_step(claim, "one") for claim in claims))
    assert proxy.lost == DRIVERS_OWN_TRIES
    stored = await kit.parts.instances.several([claim.instance.workflow_id for claim in claims])
    assert [one.steps["one"].attempt for one in stored] == [1] * len(claims)


async def test_a_holder_that_lost_its_claim_meanwhile_learns_that(kit: Kit, lossy) -> None:
    proxy, store = lossy
    claim = await claimed(kit)
    await kit.business.db["workflow_instances"].update_one({}, {"$set": {"claim_token": "t2"}})
    proxy.lose = DRIVERS_OWN_TRIES
    with pytest.raises(ClaimLost):
        await store.start_step(claim, "one")


async def test_a_holder_does_nothing_after_its_lease_may_have_run_out(kit: Kit) -> None:
    claim = await claimed(kit, lease_s=0.001)
    claim._deadline = monotonic() - 1
    before = await kit.parts.instances.get(claim.instance.workflow_id)
    with pytest.raises(ClaimLost):
        await kit.parts.store.start_step(claim, "one")
    assert await kit.parts.instances.get(claim.instance.workflow_id) == before
