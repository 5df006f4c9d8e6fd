"""One scenario per workflow shape: what callers and workers do, so that a death can be put anywhere into it.

Each act may be repeated from its beginning by whoever comes after the dead process; that is what is tested.
"""

from collections.abc import Awaitable, Callable

from kernel import Limits, Signal, Status, workflow_id_of
from tests.kernel_kit import Kit

Scenario = Callable[[Kit], Awaitable[None]]


async def _run(kit: Kit, shape: str) -> None:
    await kit.start(shape)
    await kit.run(shape)


def _plain(shape: str) -> Scenario:
    async def scenario(kit: Kit) -> None:
        await _run(kit, shape)

    return scenario


async def replay(kit: Kit) -> None:
    """The first round fails; the second finishes what was left."""
    if (await _round_of(kit, "a")) == 1:
        await _run(kit, "replay")
    await kit.start("replay", round=2)
    await kit.run("replay")


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


async def urgent(kit: Kit) -> None:
    """A second caller is in more of a hurry."""
    await kit.start("linear", priority=3)
    await kit.start("linear", priority=0)
    await kit.run("linear")


async def _ring(kit: Kit) -> None:
    await kit.start("bell", "bell-a")
    await kit.run("bell", "bell-a")


async def _round_of(kit: Kit, object_id: str) -> int:
    found = await kit.business.get(object_id)
    failed = await kit.parts.instances.get(workflow_id_of(f"replay:{object_id}"))
    ready = failed is not None and failed.status is not Status.FAILING and failed.ended
    return 2 if found and (found["round"] == 2 or ready) else 1


ELSEWHERE = (
    "Intents.",  # test_dispatch_dies
    "PermitLimits.",
    "Projections.beat",
    "Projections.forget",
    "Instances.claim_any",
    "Instances.release_parked",
    "Store.renew",
    "Store.defer_finalizer",
    "Store.wake_step",
)
"""Writes that no scenario passes yet."""

SHAPES = ("linear", "retry", "failing", "cancel", "skip", "sleep", "yield", "wave", "permit")
SCENARIOS: dict[str, Scenario] = {
    **{shape: _plain(shape) for shape in SHAPES},
    "replay": replay,
    "late_signal": late_signal,
    "early_signal": early_signal,
    "unneeded_signal": unneeded_signal,
    "supersede": supersede,
    "urgent": urgent,
    "refused_permit": refused_permit,
}
