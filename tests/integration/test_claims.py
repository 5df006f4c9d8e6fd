"""What happens to business code under a claim: time-outs, a lost claim, a blocked loop, an orderly stop, tenants."""

import asyncio
import time
from typing import Any

from kernel import Definition, Limits, Status, Step, StepContext, StepStatus, workflow_id_of
from kernel.testing import Fleet
from tests.kernel_kit import Kit
from tests.shapes import AT_ONCE, ObjectInput

BRIEF_LEASE_S = 0.4
WORKFLOW = workflow_id_of("own:a")


async def started(kit: Kit, definition: Definition, name: str = "a") -> str:
    kit.parts.publisher.register(definition.plan)
    await kit.parts.publisher.start_or_resume("own", f"own:{name}", ObjectInput(name, 1), round=1, priority=1)
    return workflow_id_of(f"own:{name}")


def fleet(kit: Kit, definition: Definition, lease_s: float = 15.0) -> Fleet:
    return Fleet(kit.parts, [definition], kit.projections, lease_s=lease_s)


async def test_a_step_that_is_too_slow_fails_after_its_old_call_has_ended(kit: Kit) -> None:
    said: list[str] = []

    async def slow_at_first(ctx: StepContext) -> None:
        said.append(f"begin {ctx.attempt}")
        try:
            if ctx.attempt == 1:
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            said.append(f"end {ctx.attempt}")

    definition = Definition("own", (Step("one", slow_at_first, timeout_s=0.05, max_retry=1, backoff=AT_ONCE),))
    await started(kit, definition)
    ended = await fleet(kit, definition).run(WORKFLOW)
    assert (ended.status, ended.steps["one"].failures) == (Status.COMPLETED, 1)
    assert said == ["begin 1", "end 1", "begin 2", "end 2"]


async def test_a_claim_that_is_lost_in_the_middle_ends_its_call_and_writes_nothing(kit: Kit) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def long(_: StepContext) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    definition = Definition("own", (Step("one", long),))
    await started(kit, definition)
    late = await fleet(kit, definition, BRIEF_LEASE_S).claim(WORKFLOW)
    assert late is not None
    running = asyncio.create_task(late.run())
    await began.wait()
    kit.parts.clock.advance(kit.parts.clock.hint(3600) - kit.parts.clock.hint(0))
    mine = await fleet(kit, definition).claim(WORKFLOW)
    assert mine is not None
    await running
    assert ended.is_set()
    found = await kit.parts.instances.get(WORKFLOW)
    assert found is not None
    assert (found.claim_token, found.revision) == (mine.claim.token, mine.claim.instance.revision)


async def test_an_activity_that_blocks_the_loop_past_its_lease_writes_nothing(kit: Kit) -> None:
    async def blocking(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            time.sleep(BRIEF_LEASE_S * 1.5)  # noqa: ASYNC251  # the fault that is tested

    definition = Definition("own", (Step("one", blocking),))
    await started(kit, definition)
    blocked = await fleet(kit, definition, BRIEF_LEASE_S).claim(WORKFLOW)
    assert blocked is not None
    await blocked.run()
    found = await kit.parts.instances.get(WORKFLOW)
    assert found is not None
    assert (found.status, found.steps["one"].status) == (Status.RUNNING, StepStatus.RUNNING)
    ended = await fleet(kit, definition).run(WORKFLOW)
    assert (ended.status, ended.steps["one"].attempt) == (Status.COMPLETED, 2)


async def test_an_orderly_stop_ends_the_claim_after_the_present_step(kit: Kit) -> None:
    entered: list[str] = []

    async def step(ctx: StepContext) -> None:
        entered.append(ctx.step)
        execution.stop()

    definition = Definition("own", (Step("one", step), Step("two", step)))
    await started(kit, definition)
    claimed = await fleet(kit, definition).claim(WORKFLOW)
    assert claimed is not None
    execution = claimed
    await execution.run()
    found = await kit.parts.instances.get(WORKFLOW)
    assert found is not None
    assert (found.claim_token, entered) == ("", ["one"])
    assert (await fleet(kit, definition).run(WORKFLOW)).status is Status.COMPLETED


async def test_each_tenant_has_a_permit_of_its_own(kit: Kit) -> None:
    async def work(_: StepContext) -> None:
        return None

    def tenant(values: Any) -> str:
        return f"tenant:{values['object_id']}"

    definition = Definition("own", (Step("one", work),), tenant_resource=tenant)
    busy, idle = await started(kit, definition), await started(kit, definition, "b")
    for name in ("a", "b"):
        await kit.parts.limits.change(f"tenant:{name}", Limits(1, 0))
    await kit.parts.permits.acquire("tenant:a", "somebody/else", "token", Limits(1, 0))
    for workflow_id in (busy, idle):
        await fleet(kit, definition).claim_and_run(workflow_id)
    waits, done = [await kit.parts.instances.get(workflow_id) for workflow_id in (busy, idle)]
    assert waits is not None
    assert done is not None
    assert (done.status, waits.status) == (Status.COMPLETED, Status.RUNNING)
    assert waits.steps["one"].traffic_reason
    await kit.parts.permits.release("tenant:a", "somebody/else", "token")
    assert (await fleet(kit, definition).run(busy)).status is Status.COMPLETED


async def test_what_a_definition_prepares_is_there_for_every_step(kit: Kit) -> None:
    async def step(ctx: StepContext) -> dict[str, Any]:
        return {"prepared": ctx.prepared}

    definition = Definition(
        "own", (Step("one", step), Step("two", step)), prepare_context=lambda values: f"for {values['object_id']}"
    )
    await started(kit, definition)
    ended = await fleet(kit, definition).run(WORKFLOW)
    assert ended.output == {"one": {"prepared": "for a"}, "two": {"prepared": "for a"}}
