"""Instances, signals and waits against a small model: whatever is done in whatever order, both stand in the same place.

The workflow waits until its object is paid (a signal of its round, or a poll after a quarter of an hour), then works,
and fails while the object is broken. Workers may die at any durable write on the way.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis.asyncio import Redis

from kernel import Clock, Definition, Fatal, Signal, Step, StepContext, WaitForSignal, faults, workflow_id_of
from kernel.driver import open_database, open_mongo
from kernel.testing import Crash, Fleet, crash_at
from tests.kernel_kit import Kit, open_kit
from tests.shapes import ObjectInput

WORKFLOW = workflow_id_of("model:a")
POLL_S = 900.0
ROUNDS = st.integers(1, 4)
DEATHS = faults.points("kernel.store", "kernel.inbox", "kernel.instances")


@dataclass
class Model:
    """What ought to be."""

    status: str | None = None
    round: int = 0
    run: int = 1
    paid: bool = False
    broken: bool = False
    waited_long: bool = False
    wait_done: bool = False
    effects: int = 0
    inbox: dict[int, bool] = field(default_factory=dict)  # generation: consumed

    def start(self, round: int) -> bool:
        if self.status is None:
            self.status, self.round = "running", round
        elif self.status == "failed" and round > self.round:
            self.status, self.round, self.run = "running", round, self.run + 1
        else:
            return False
        return True

    def ring(self, generation: int) -> bool:
        new = generation not in self.inbox
        self.inbox.setdefault(generation, False)
        self._match()
        return new

    def settle(self) -> None:
        if self.status == "waiting" and self.waited_long:
            self.status, self.waited_long = "running", False
        while self.status == "running":
            self._go_on()

    def _go_on(self) -> None:
        self.wait_done = self.wait_done or self.paid
        if not self.wait_done:
            self.status = "waiting"
            self._match()
        elif self.broken:
            self.status = "failed"
        else:
            self.status, self.effects = "completed", 1

    def _match(self) -> None:
        if self.status == "waiting" and self.inbox.get(self.round) is False:
            self.inbox[self.round], self.status, self.waited_long = True, "running", False

    def supersede(self) -> bool:
        live = self.status in ("running", "waiting")
        self.status = "canceled" if live else self.status
        return live


class Machine(RuleBasedStateMachine):
    """Drives the kernel and the model together."""

    loop: asyncio.AbstractEventLoop
    kit: Kit

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

        async def wait(ctx: StepContext) -> WaitForSignal | None:
            return None if self.model.paid else WaitForSignal("paid", "a", ctx.round, poll_fallback_s=POLL_S)

        async def work(ctx: StepContext) -> None:
            if self.model.broken:
                raise Fatal("broken")
            await self.kit.business.effect(ctx.biz_key)

        definition = Definition("model", (Step("wait", wait), Step("work", work)))
        self.kit.parts.publisher.register(definition.plan)
        self.fleet = Fleet(self.kit.parts, [definition], self.kit.projections)

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @initialize()
    def begin(self) -> None:
        self.another_object(early_signal=False)

    @rule(early_signal=st.booleans())
    @precondition(lambda self: self.model.status in ("completed", "canceled"))
    def another_object(self, early_signal: bool) -> None:
        """Where nothing more can happen, everything begins anew."""
        for name in self.do(self.kit.business.db.list_collection_names()):
            self.do(self.kit.business.db[name].delete_many({}))
        vars(self.model).update(vars(Model()))
        if early_signal:
            self.ring(1)
        self.start(1)

    @rule(round=ROUNDS)
    def start(self, round: int) -> None:
        started = self.do(
            self.kit.parts.publisher.start_or_resume(
                "model", "model:a", ObjectInput("a", round), round=round, priority=1
            )
        )
        assert started.activated == self.model.start(round)

    @rule(generation=ROUNDS)
    def ring(self, generation: int) -> None:
        signal = Signal(
            signal_id=f"paid:{generation}",
            workflow_id=WORKFLOW,
            signal_type="paid",
            wait_key="a",
            generation=generation,
        )
        assert self.do(self.kit.parts.publisher.deliver_signal(signal)) == self.model.ring(generation)

    @rule(paid=st.booleans(), broken=st.booleans())
    def change_the_facts(self, paid: bool, broken: bool) -> None:
        self.model.paid, self.model.broken = paid, broken

    @rule()
    def settle(self) -> None:
        self.do(self._claims())
        self.model.settle()

    @rule(point=st.sampled_from(DEATHS))
    def settle_after_a_death(self, point: str) -> None:
        try:
            with crash_at(point):
                self.do(self._claims())
        except Crash:
            self.fleet.skip_lease()
        self.do(self._claims())
        self.model.settle()

    @rule()
    def wait_long(self) -> None:
        self.kit.parts.clock.advance(timedelta(seconds=POLL_S + 100))
        self.model.waited_long = self.model.status == "waiting"

    @rule(really=st.integers(0, 9))
    def supersede(self, really: int) -> None:
        if really != 9:  # seldom: it ends the story
            return
        assert self.do(self.kit.parts.publisher.supersede(WORKFLOW)) == self.model.supersede()

    @invariant()
    def both_agree(self) -> None:
        found = self.do(self.kit.parts.instances.get(WORKFLOW))
        if self.model.status is None:
            assert found is None
            return
        assert (found.status, found.round, found.run) == (self.model.status, self.model.round, self.model.run)
        assert len(self.do(self.kit.business.effects())) == self.model.effects
        signals = self.do(self.kit.business.db["workflow_signals"].find({}).to_list(10))
        assert {one["generation"]: one["match_time"] is not None for one in signals} == self.model.inbox

    async def _claims(self) -> None:
        """Claims until there is nothing to be had now, each after a look into the inbox as the scan does it."""
        if await self.kit.parts.instances.get(WORKFLOW) is None:
            return
        while await self.fleet.claim_and_run(WORKFLOW):
            pass
        await self.kit.parts.publisher.match_signals([WORKFLOW])
        if await self.fleet.claim_and_run(WORKFLOW):
            await self._claims()


def test_the_kernel_agrees_with_the_model(server_urls: tuple[str, str], prefix: str) -> None:
    loop = asyncio.new_event_loop()
    client, redis = open_mongo(server_urls[0]), Redis.from_url(server_urls[1])
    database = open_database(client, f"{prefix}_model".replace(":", "_"))
    Machine.loop = loop
    Machine.kit = loop.run_until_complete(open_kit(database, redis, prefix, Clock()))
    try:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=50,
                stateful_step_count=40,
                deadline=None,
                derandomize=True,
                suppress_health_check=[*HealthCheck],
            ),
        )
    finally:
        loop.run_until_complete(client.drop_database(database.name))
        loop.run_until_complete(redis.aclose())
        client.close()
        loop.close()
