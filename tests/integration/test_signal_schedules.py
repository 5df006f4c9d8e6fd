"""Signals early, late, doubled, crossed and of other generations, in random schedules: one wake-up for every wait."""

import asyncio
import os
import random
from collections import Counter
from dataclasses import dataclass, field

from kernel import Definition, Signal, Status, Step, StepContext, WaitForSignal, workflow_id_of
from kernel.model import Resume
from kernel.testing import Fleet
from tests.kernel_kit import Kit
from tests.shapes import ObjectInput

SCHEDULES = int(os.environ.get("SCHEDULES", "200"))
"""`make crash` tries a thousand."""
SEED = int(os.environ.get("SEED", "20261201"))
AT_ONCE = 25
WAITS = 3


@dataclass
class Listeners:
    """Workflows that wait for generation 1, then 2, then 3 of a bell, with no poll beside it."""

    kit: Kit
    woken: Counter[tuple[str, int]] = field(default_factory=Counter)  # by workflow and generation

    def __post_init__(self) -> None:
        self.definition = Definition("listener", (Step("listen", self.listen),))
        self.kit.parts.publisher.register(self.definition.plan)
        self.fleet = Fleet(self.kit.parts, [self.definition], self.kit.projections)

    async def listen(self, ctx: StepContext) -> WaitForSignal | None:
        generation = (ctx.checkpoint or {}).get("generation", 0)
        if ctx.resume is not None:
            assert ctx.resume.kind == "signal"
            self.woken[ctx.biz_key, generation] += 1
        elif generation:
            raise AssertionError("awake without a reason")
        if generation == WAITS:
            return None
        return WaitForSignal("bell", "b", generation + 1, checkpoint={"generation": generation + 1})

    async def start(self, name: str) -> str:
        key = f"listener:{name}"
        await self.kit.parts.publisher.start_or_resume("listener", key, ObjectInput(name, 1), round=1, priority=1)
        return workflow_id_of(key)

    async def ring(self, workflow_id: str, generation: int, number: int) -> None:
        signal = Signal(
            signal_id=f"{workflow_id}/{generation}/{number}",
            workflow_id=workflow_id,
            signal_type="bell",
            wait_key="b",
            generation=generation,
        )
        await self.kit.parts.publisher.deliver_signal(signal)


async def follow(listeners: Listeners, name: str, chance: random.Random) -> None:
    """One schedule: each generation rings at least once, some twice, some with the same id; claims in between."""
    workflow_id = await listeners.start(name)
    rings = [(generation, number) for generation in range(WAITS + 2) for number in range(chance.randint(1, 2))]
    rings += chance.sample(rings, 2)
    chance.shuffle(rings)
    while rings:
        together = [listeners.ring(workflow_id, *rings.pop()) for _ in range(min(chance.randint(1, 3), len(rings)))]
        if chance.random() < 0.6:
            together.append(claimed(listeners, workflow_id))
        await asyncio.gather(*together)
    ended = await listeners.fleet.run(workflow_id)
    assert ended.status is Status.COMPLETED, f"{name} (SEED={SEED})"
    wakes = [listeners.woken[f"listener:{name}", generation] for generation in range(1, WAITS + 1)]
    assert wakes == [1] * WAITS, f"{name} (SEED={SEED})"


async def claimed(listeners: Listeners, workflow_id: str) -> None:
    await listeners.fleet.claim_and_run(workflow_id)


async def test_every_wait_is_woken_once_whatever_the_schedule(kit: Kit) -> None:
    listeners = Listeners(kit)
    for first in range(0, SCHEDULES, AT_ONCE):
        names = [str(number) for number in range(first, min(first + AT_ONCE, SCHEDULES))]
        await asyncio.gather(*(follow(listeners, name, random.Random(f"{SEED}/{name}")) for name in names))
    assert sum(listeners.woken.values()) == SCHEDULES * WAITS
    matched = await kit.business.db["workflow_signals"].count_documents({"match_time": {"$ne": None}})
    assert matched == SCHEDULES * WAITS, "one signal consumed for each wait"


async def test_a_late_wake_up_for_a_wait_that_is_over_misses_the_next_one(kit: Kit) -> None:
    listeners = Listeners(kit)
    workflow_id = await listeners.start("late")
    await listeners.fleet.claim_and_run(workflow_id)
    first = await kit.parts.instances.get(workflow_id)
    assert first is not None
    over = first.steps["listen"].wait
    assert over is not None
    await listeners.ring(workflow_id, 1, 0)
    await listeners.fleet.claim_and_run(workflow_id)
    second = await kit.parts.instances.get(workflow_id)
    late = await kit.parts.instances.activate(workflow_id, "listen", over, Resume("signal", "late"), due=False)
    assert late is None
    assert await kit.parts.instances.get(workflow_id) == second
