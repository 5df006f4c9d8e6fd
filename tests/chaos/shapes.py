"""Workflows of every shape, and what each must have done to the world when it has ended as meant.

None of them knows of the faults around it. Where a shape fails, waits or blocks, it does so on purpose.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kernel import (
    Backoff,
    Definition,
    Fatal,
    Outcome,
    Publisher,
    Signal,
    Sleep,
    Step,
    StepContext,
    WaitForSignal,
    WorkflowCanceled,
    WorkflowContext,
    Yield,
    in_thread,
    workflow_id_of,
)
from tests.chaos.ledger import Ledger, ObjectInput
from tests.chaos.plan import LEASE_S
from tests.chaos.requests import BELLS

SOON = Backoff(first_s=0.2, longest_s=1.0)
PAGES = 4
TELL_AT_ONCE = 2
POISONED_ATTEMPTS = 5
LONGEST_SLEEP_S = 0.6
CANCELED = frozenset({"withdrawn"})
FAILED = frozenset({"failing"})

EFFECTS = {
    "linear": {"two@1", "three@1"},
    "retry": {"one@1", "two@1"},
    "skip": {"two@1"},
    "wave": {"left@1", "below@1", "join@1"},
    "sleep": {"two@1"},
    "yield": {*(f"one/{page}@1" for page in range(PAGES)), "two@1"},
    "patient": {"two@1"},
    "fanout": set(),
    "listener": {"two@1"},
    "failing": {"two@1"},
    "replay": {"two@1", "three@2", "four@2"},
    "withdrawn": {"one@1"},
    "narrow": {"one@1", "two@1"},
    "brisk": {"one@1", "two@1"},
    "wide": {"two@1"},
    "blocking": {"one@1", "two@1"},
    "threaded": {"one@1"},
    "streaming": {"one@1"},
    "poison": {"one@1"},
}
"""Effects under their short keys: exactly these, once each, whatever was killed."""

TASKS = {"wave": {"right@1"}, "sleep": {"one@1"}, "wide": {"one@1"}}
"""Tasks at the outside service, likewise."""

HOLDING = frozenset({"linear", "failing", "replay"})
"""Shapes that hold a place of the quota from their first step on."""


def biz_key_of(object_id: str) -> str:
    return f"chaos:{object_id}"


def expected_state(shape: str) -> str:
    """How an object of this shape ends if nobody removes it."""
    return "canceled" if shape in CANCELED else "failed" if shape in FAILED else "completed"


def bell(object_id: str, generation: int) -> Signal:
    """The signal a listener waits for the `generation`-th time."""
    return Signal(
        signal_id=f"{object_id}#{generation}",
        workflow_id=workflow_id_of(biz_key_of(object_id)),
        signal_type="bell",
        wait_key=object_id,
        generation=generation,
    )


@dataclass(frozen=True)
class Activities:
    """The business code of all shapes."""

    ledger: Ledger
    publisher: Publisher

    async def work(self, context: StepContext) -> Outcome:
        found = await self.ledger.enter(context)
        await asyncio.sleep(found["takes_s"])
        return {"did": await self.ledger.effect(context)}

    async def quick(self, context: StepContext) -> Outcome:
        await self.ledger.enter(context)
        return {"did": await self.ledger.effect(context)}

    async def hold(self, context: StepContext) -> Outcome:
        await self.ledger.enter(context)
        await self.ledger.take_hold(context)
        return {}

    async def flaky(self, context: StepContext) -> Outcome:
        await self.ledger.enter(context)
        if context.attempt < 3:
            raise RuntimeError("not yet")
        return {"did": await self.ledger.effect(context)}

    async def broken(self, context: StepContext) -> Outcome:
        await self.ledger.enter(context)
        raise Fatal("it cannot be done")

    async def broken_at_first(self, context: StepContext) -> Outcome:
        await self.ledger.enter(context)
        await self.ledger.take_hold(context)  # the next round's own: the step that took the first one is done
        if context.round == 1:
            raise Fatal("not in this round")
        return {"did": await self.ledger.effect(context)}

    async def polled(self, context: StepContext) -> Outcome:
        """Submits once, then asks until the outside service is done."""
        await self.ledger.enter(context)
        known = context.checkpoint
        task = known["task"] if known else await self.ledger.submit(context, 1.5)
        if not await self.ledger.finished(task, context.now()):
            return Sleep(LONGEST_SLEEP_S, {"task": task})
        return {}

    async def paging(self, context: StepContext) -> Outcome:
        found = await self.ledger.enter(context)
        page = (context.checkpoint or {}).get("page", 0)
        await asyncio.sleep(found["takes_s"] / PAGES)
        await self.ledger.effect(context, f"/{page}")
        return Yield({"page": page + 1}) if page + 1 < PAGES else {}

    async def patient(self, context: StepContext) -> Outcome:
        """Waits for a fact; the bell may or may not ring for it."""
        found = await self.ledger.enter(context)
        if found["ready_at"] <= context.now():
            return {}
        return WaitForSignal("bell", found["_id"], 1, poll_fallback_s=1.0)

    async def listen(self, context: StepContext) -> Outcome:
        """Counts bells and nothing else: one that is lost leaves it waiting for ever, one too many is seen."""
        found = await self.ledger.enter(context)
        heard = (context.checkpoint or {}).get("heard", 0)
        if context.resume is not None and context.resume.kind == "signal":
            heard += 1
            if context.resume.signal_id != bell(found["_id"], heard).signal_id:
                await self.ledger.breach(f"{found['_id']} was woken by {context.resume.signal_id}, not by bell {heard}")
        if heard == BELLS:
            return {}
        return WaitForSignal("bell", found["_id"], heard + 1, checkpoint={"heard": heard})

    async def tell(self, context: StepContext) -> Outcome:
        """Rings for many, some at a time."""
        found = await self.ledger.enter(context)
        if context.checkpoint is None:
            return Sleep(found["delay_s"], {"told": 0})
        told = context.checkpoint["told"]
        for target in found["targets"][told : told + TELL_AT_ONCE]:
            await self.publisher.deliver_signal(bell(target, 1))
        told += TELL_AT_ONCE
        return Yield({"told": told}) if told < len(found["targets"]) else {}

    async def withdrawing(self, context: StepContext) -> Outcome:
        """Finds that its object is gone, because it has just removed it."""
        found = await self.ledger.enter(context)
        await self.ledger.remove(found["_id"])
        raise WorkflowCanceled("the object was removed")

    async def calling(self, context: StepContext) -> Outcome:
        await self.ledger.enter(context)
        await asyncio.sleep(0.4)
        return {"did": await self.ledger.effect(context)}

    async def blocking(self, context: StepContext) -> Outcome:
        """Holds the whole event loop up for longer than a lease, the first time."""
        await self.ledger.enter(context)
        if context.attempt == 1:
            time.sleep(LEASE_S * 1.3)  # noqa: ASYNC251 - this is what it is for
        return {"did": await self.ledger.effect(context)}

    async def threaded(self, context: StepContext) -> Outcome:
        await self.ledger.enter(context)
        await in_thread(time.sleep, 0.3)
        return {"did": await self.ledger.effect(context)}

    async def streaming(self, context: StepContext) -> Outcome:
        await self.ledger.enter(context)
        sink = await context.open_stream()
        for word in range(5):
            await sink.write(f"word {word} ")
            await asyncio.sleep(0.05)
        await sink.flush()
        return {"did": await self.ledger.effect(context)}

    async def poison(self, context: StepContext) -> Outcome:
        """Kills its worker until somebody has looked at it."""
        await self.ledger.enter(context)
        if context.attempt <= POISONED_ATTEMPTS:
            os._exit(9)
        return {"did": await self.ledger.effect(context)}

    async def complete(self, context: WorkflowContext) -> None:
        await self.ledger.settle(context, "completed")

    async def fail(self, context: WorkflowContext) -> None:
        """The hold goes back first: afterwards the next round may begin, and nobody would come back for it."""
        given = context.load_input(ObjectInput)
        await self.ledger.return_hold(given.object_id, given.fencing_token)
        await self.ledger.settle(context, "failed")


def definitions(ledger: Ledger, publisher: Publisher) -> list[Definition]:
    """All shapes."""
    do = Activities(ledger, publisher)
    finish = partial(Definition, success_finalizer=do.complete, failure_finalizer=do.fail)
    flaky = partial(Step, activity=do.flaky, max_retry=2, backoff=SOON)
    two = Step("two", do.work)
    return [
        finish("linear", (Step("one", do.hold), two, Step("three", do.work))),
        finish("retry", (flaky("one"), two)),
        finish("skip", (Step("one", do.broken, on_failed="skip"), two)),
        finish("wave", _wave(do, flaky)),
        finish("sleep", (Step("one", do.polled), two)),
        finish("yield", (Step("one", do.paging), two)),
        finish("patient", (Step("one", do.patient), two)),
        finish("fanout", (Step("one", do.tell),)),
        finish("listener", (Step("one", do.listen), two)),
        finish("failing", (Step("one", do.hold), two, Step("three", do.broken, max_retry=3))),
        finish("replay", (Step("one", do.hold), two, Step("three", do.broken_at_first), Step("four", do.work))),
        finish("withdrawn", (Step("one", do.work), Step("two", do.withdrawing))),
        finish("narrow", (Step("one", do.calling, resource="narrow"), two), tenant_resource=_tenant),
        finish("brisk", (Step("one", do.quick, resource="brisk"), Step("two", do.quick, resource="brisk"))),
        finish("wide", (Step("one", do.polled, resource="wide", hold="task"), two)),
        finish("blocking", (Step("one", do.blocking), two)),
        finish("threaded", (Step("one", do.threaded),)),
        finish("streaming", (Step("one", do.streaming),), streams=True),
        finish("poison", (Step("one", do.poison),)),
    ]


def _wave(do: Activities, flaky: Callable[..., Step]) -> tuple[Step, ...]:
    return (
        Step("left", do.work, depends_on=()),
        Step("right", do.polled, depends_on=()),
        flaky("below", depends_on=()),
        Step("join", do.work, depends_on=("left", "right", "below")),
    )


def _tenant(values: Any) -> str:
    return f"tenant:{values['tenant']}"
