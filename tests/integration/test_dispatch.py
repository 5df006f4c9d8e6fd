"""From an accepted request to a registered workflow: every window between the two records closes."""

import asyncio

import pytest

from kernel import Status, workflow_id_of
from kernel.dispatch import AnotherRound
from kernel.intents import FIRST_DUE_S
from tests.desk import Desk
from tests.kernel_kit import Kit
from tests.shapes import ObjectInput


@pytest.fixture
def desk(kit: Kit) -> Desk:
    return kit.desk


async def test_the_request_path_registers_and_confirms(desk: Desk) -> None:
    await desk.accept("a")
    started = await desk.dispatcher.dispatch("a", 1)
    assert started.activated
    assert await desk.status("a") == "dispatched"
    assert await desk.dispatcher.dispatch("a", 1) is None, "a repeated request finds it done"


async def test_a_request_that_died_before_registering_is_recovered_once_due(desk: Desk, kit: Kit) -> None:
    await desk.accept("a")
    assert await desk.dispatcher.recover() == 0, "its request may still be at it"
    desk.later(FIRST_DUE_S + 1)
    await desk.mutex.forget("dispatch")
    assert await desk.dispatcher.recover() == 1
    assert await desk.status("a") == "dispatched"
    assert (await kit.run("replay")).type == "replay"


async def test_a_request_that_died_before_confirming_is_confirmed_by_the_recovery(desk: Desk, kit: Kit) -> None:
    await desk.accept("a")
    await kit.parts.publisher.start_or_resume("replay", "replay:a", ObjectInput("a", 1), round=1, priority=1)
    desk.later(FIRST_DUE_S + 1)
    assert await desk.dispatcher.recover() == 1
    assert await desk.status("a") == "dispatched"


async def test_of_two_dispatchers_only_the_holder_of_the_lease_confirms(desk: Desk) -> None:
    await desk.accept("a")
    desk.later(FIRST_DUE_S + 1)
    first = await desk.intents.lease("a", "d1", 30.0)
    assert first.attempts == 1
    assert await desk.intents.lease("a", "d2", 30.0) is None
    desk.later(31)
    assert await desk.intents.lease("a", "d2", 30.0) is not None
    assert not await desk.intents.confirm_leased("a", 1, "d1")
    assert not await desk.intents.renew("a", 1, "d1", 30.0)
    assert not await desk.intents.give_back("a", 1, "d1", 5.0, "late")
    assert await desk.intents.confirm_leased("a", 1, "d2")


async def test_the_request_does_not_take_the_lease_from_a_recovery(desk: Desk) -> None:
    await desk.accept("a")
    desk.later(FIRST_DUE_S + 1)
    await desk.intents.lease("a", "d1", 30.0)
    assert await desk.dispatcher.dispatch("a", 1) is None
    assert await desk.status("a") == "processing"


async def test_a_late_confirmation_does_not_touch_the_next_round(desk: Desk) -> None:
    await desk.accept("a", 1)
    await desk.accept("a", 2)
    assert not await desk.intents.confirm("a", 1)
    with pytest.raises(AnotherRound):
        await desk.dispatcher.dispatch("a", 1)
    assert await desk.status("a") == "pending"


async def test_a_retry_round_replays_the_failed_instance(desk: Desk, kit: Kit) -> None:
    await desk.accept("a", 1)
    await desk.dispatcher.dispatch("a", 1)
    assert (await kit.run("replay")).status is Status.FAILED
    await desk.accept("a", 2)
    assert (await desk.dispatcher.dispatch("a", 2)).activated
    ended = await kit.run("replay")
    assert (ended.status, ended.round, ended.run) == (Status.COMPLETED, 2, 2)


async def test_a_round_waits_while_the_older_one_still_fails(desk: Desk, kit: Kit) -> None:
    await desk.accept("a", 1)
    started = await desk.dispatcher.dispatch("a", 1)
    await kit.business.db["workflow_instances"].update_one(
        {"_id": started.instance.workflow_id}, {"$set": {"status": "failing"}}
    )
    await desk.accept("a", 2)
    desk.later(FIRST_DUE_S + 1)
    await desk.dispatcher.recover()
    found = await desk.intents.get("a")
    assert (found.status, found.error) == ("pending", "round 1 has not ended yet")


async def test_a_round_that_no_replay_can_serve_is_rejected_by_name(desk: Desk, kit: Kit) -> None:
    await desk.accept("a", 1)
    await desk.dispatcher.dispatch("a", 1)
    await kit.parts.publisher.supersede(workflow_id_of("replay:a"))
    await desk.accept("a", 2)
    desk.later(FIRST_DUE_S + 1)
    await desk.dispatcher.recover()
    assert desk.rejected == [("a", 2, "not_resumable")]
    assert await desk.status("a") == "dispatched"


async def test_a_legacy_intent_without_input_is_rebuilt(desk: Desk) -> None:
    await desk.accept("a")
    await desk.objects.update_one({"_id": "a"}, {"$set": {"workflow_dispatch.input": None}})
    assert (await desk.dispatcher.dispatch("a", 1)).instance.input == {"object_id": "a", "fencing_token": 1}


async def test_an_invalid_stored_input_is_shown_and_never_dropped(desk: Desk) -> None:
    await desk.accept("a")
    await desk.objects.update_one({"_id": "a"}, {"$set": {"workflow_dispatch.input.fencing_token": 7}})
    desk.later(FIRST_DUE_S + 1)
    await desk.dispatcher.recover()
    found = await desk.intents.get("a")
    assert found.status == "pending"
    assert "another round" in found.error


async def test_many_dispatchers_register_one_instance(desk: Desk, kit: Kit) -> None:
    await desk.accept("a")
    desk.later(FIRST_DUE_S + 1)
    await asyncio.gather(*(desk.dispatcher.recover() for _ in range(8)), desk.dispatcher.dispatch("a", 1))
    assert await desk.status("a") == "dispatched"
    assert await kit.business.db["workflow_instances"].count_documents({}) == 1


async def test_a_lost_pop_delays_and_never_loses(desk: Desk) -> None:
    await desk.accept("a")
    found = await desk.intents.get("a")
    await desk.candidates.add("a", found.next_attempt_at)
    desk.later(FIRST_DUE_S + 1)
    assert await desk.candidates.pop(10) == ["a"], "and here its dispatcher dies"
    await desk.mutex.forget("dispatch")
    assert await desk.dispatcher.recover() == 1
