"""One scenario per workflow shape: what callers and workers do, so that a death can be put anywhere into it.

Each act may be repeated from its beginning by whoever comes after the dead process; that is what is tested.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

from kernel import Limits, Signal, Status, faults, workflow_id_of
from kernel.dispatch import LEASE_S as DISPATCH_LEASE_S
from kernel.dispatch import AnotherRound
from kernel.intents import FIRST_DUE_S
from kernel.testing import LEASE_S
from tests.kernel_kit import Kit

Scenario = Callable[[Kit], Coroutine[Any, Any, None]]


async def _run(kit: Kit, shape: str) -> None:
    await kit.start(shape)
    await kit.run(shape)


def _plain(shape: str) -> Scenario:
    async def scenario(kit: Kit) -> None:
        await _run(kit, shape)

    return scenario


async def replay(kit: Kit) -> None:
    """The first round fails; the second finishes what was left."""
    await _rounds(kit, "replay")


async def failing_again(kit: Kit) -> None:
    """The second round fails as the first did."""
    await _rounds(kit, "failing")


async def second_round_waits(kit: Kit) -> None:
    """The first round fails; the second is still at work when all else is over."""
    await _rounds(kit, "patient")


async def _rounds(kit: Kit, shape: str) -> None:
    if await _in_first_round(kit, shape):
        await _run(kit, shape)
    await kit.start(shape, round=2)
    await kit.run(shape)


async def late_signal(kit: Kit) -> None:
    """The waiter waits, then another workflow makes the fact true and rings."""
    await kit.start("signal")
    await kit.fleet.claim_and_run(workflow_id_of("signal:a"))
    await _ring(kit)
    await kit.run("signal")


async def early_signal(kit: Kit) -> None:
    """The bell rings before the waiter has begun."""
    await kit.start("signal")
    await _ring(kit)
    await kit.run("signal")


async def unneeded_signal(kit: Kit) -> None:
    """The notice comes although nothing has changed: the waiter looks, and waits for the poll."""
    await kit.start("signal")
    await kit.fleet.claim_and_run(workflow_id_of("signal:a"))
    signal = Signal(
        signal_id="nothing", workflow_id=workflow_id_of("signal:a"), signal_type="ready", wait_key="a", generation=1
    )
    await kit.parts.publisher.deliver_signal(signal)
    await kit.run_claims("signal", 1)
    await kit.business.db["objects"].update_one({"_id": "a"}, {"$set": {"ready": True}})
    await kit.run("signal")


async def supersede(kit: Kit) -> None:
    """The business side cancels a waiting workflow from outside, until it is canceled."""
    await kit.start("signal")
    await kit.fleet.claim_and_run(workflow_id_of("signal:a"))
    await kit.business.db["objects"].update_one({"_id": "a"}, {"$set": {"state": "canceled"}})
    await kit.parts.publisher.supersede(workflow_id_of("signal:a"))


async def refused_permit(kit: Kit) -> None:
    """Somebody else holds the only permit, and lets it go."""
    await kit.parts.permits.acquire("narrow", "somebody/else", "token", Limits(1, 0))
    await kit.start("permit")
    await kit.run_claims("permit", 1)
    await kit.parts.permits.release("narrow", "somebody/else", "token")
    await kit.run("permit")


async def renewed(kit: Kit) -> None:
    """A step that takes longer than a third of its lease."""
    started = await kit.start("linear")
    execution = await kit.fleet.claim(started.instance.workflow_id)
    if execution is not None:
        await kit.parts.store.renew(execution.claim)
        await execution.run()
    await kit.run("linear")


async def woken_inside(kit: Kit) -> None:
    """A wave in which one step waits while another fails and is tried again: its claim wakes the waiting one."""
    await kit.start("wave")
    await kit.run_claims("wave", 1)
    kit.parts.clock.advance(timedelta(seconds=61))
    execution = await kit.fleet.claim(workflow_id_of("wave:a"))
    if execution is not None:
        await execution.run()
    await kit.run("wave")


async def urgent(kit: Kit) -> None:
    """A second caller is in more of a hurry."""
    await kit.start("linear", priority=3)
    await kit.start("linear", priority=0)
    await kit.run("linear")


async def requested(kit: Kit) -> None:
    """A request registers and confirms; whatever it leaves undone is for the recovery."""
    await kit.desk.accept("a")
    with suppress(AnotherRound):
        await kit.desk.dispatcher.dispatch("a", 1)
    await _recovered(kit)
    await kit.run("replay")


async def recovered(kit: Kit) -> None:
    """Requests that only stored their object. The second round is accepted while the first one still runs."""
    await kit.desk.accept("a")
    await _recovered(kit)
    await kit.desk.accept("a", 2)
    kit.desk.later(FIRST_DUE_S + 1)
    await kit.desk.scan()
    kit.desk.later(DISPATCH_LEASE_S)
    if await kit.desk.intents.lease("a", "slow", DISPATCH_LEASE_S):
        await kit.desk.intents.renew("a", 2, "slow", DISPATCH_LEASE_S)
    await kit.run("replay")
    await _recovered(kit)
    await kit.run("replay")


async def _recovered(kit: Kit) -> None:
    while True:
        kit.desk.later(DISPATCH_LEASE_S + FIRST_DUE_S)
        await kit.desk.scan()
        if await kit.desk.status("a") == "dispatched":
            return
        await kit.run("replay")  # an older round is in its way


async def parked(kit: Kit) -> None:
    """Every claim kills its worker until the instance is parked; an operator lets it go, and it works."""
    await kit.start("linear")
    workflow_id = workflow_id_of("linear:a")
    while await kit.fleet.claim(workflow_id):
        kit.fleet.skip_lease()
    await kit.parts.instances.release_parked(workflow_id)
    await kit.run("linear")


async def without_lanes(kit: Kit) -> None:
    """Redis is away: a worker takes any due instance, and dies with it."""
    await kit.start("linear")
    served = [(one.type, one.plan.fingerprint) for one in kit.definitions]
    await kit.parts.instances.claim_any(served, "token", "worker", LEASE_S)
    kit.fleet.skip_lease()
    await kit.run("linear")


async def operated(kit: Kit) -> None:
    """A limit is changed under a running system, and a worker comes and goes."""
    await kit.parts.limits.change("narrow", Limits(2, 0))
    await kit.projections.beat("worker", 8, 0, 0, 0)
    await _run(kit, "permit")
    await kit.projections.forget_worker("worker")


async def _ring(kit: Kit) -> None:
    await kit.start("bell", "bell-a")
    await kit.run("bell", "bell-a")


async def _in_first_round(kit: Kit, shape: str) -> bool:
    found = await kit.parts.instances.get(workflow_id_of(f"{shape}:a"))
    return found is None or (found.round == 1 and found.status is not Status.FAILED)


KERNEL_POINTS = faults.points("kernel", "tests.shapes")
"""Every moment of the kernel's durable writes, and of the shapes' business writes."""

WITHOUT_CLAIM = ("Instances.create", "Instances.raise_priority", "Instances.supersede")
"""Writes that may change an instance that somebody holds: each a compare-and-set of its own."""

SHAPES = ("linear", "retry", "failing", "cancel", "skip", "sleep", "yield", "wave", "permit", "bare")
SCENARIOS: dict[str, Scenario] = {
    **{shape: _plain(shape) for shape in SHAPES},
    "replay": replay,
    "failing_again": failing_again,
    "second_round_waits": second_round_waits,
    "late_signal": late_signal,
    "early_signal": early_signal,
    "unneeded_signal": unneeded_signal,
    "supersede": supersede,
    "urgent": urgent,
    "refused_permit": refused_permit,
    "renewed": renewed,
    "woken_inside": woken_inside,
    "stumbling": _plain("stumbling"),
    "requested": requested,
    "recovered": recovered,
    "parked": parked,
    "without_lanes": without_lanes,
    "operated": operated,
}
