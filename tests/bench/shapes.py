"""The workflows of the benchmark as definitions of ours, and the fan-out of the product over them."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from activities import stream_fanout
from activities.plans import SIGNAL_OF, STREAM_FANOUT
from kernel import Definition, Outcome, Plan, Publisher, Sleep, Step, StepContext, WaitForSignal

STEPS = ("s0", "s1", "s2", "s3")
TOPIC = next(iter(SIGNAL_OF))


class Job(msgspec.Struct, frozen=True):
    """Input: how long a step or a sleep takes, and the bell that a waiter listens for."""

    seconds: float = 0.0
    bell: str = ""
    bell_key: str = ""


async def step(place: int, ctx: StepContext) -> Outcome:
    if seconds := ctx.input["seconds"]:
        await asyncio.sleep(seconds)
    return {"i": place}


async def sleep(ctx: StepContext) -> Outcome:
    return {"ok": 1} if ctx.checkpoint else Sleep(ctx.input["seconds"], {"slept": True})


async def wait(ctx: StepContext) -> Outcome:
    if ctx.resume:
        return {"ok": 1}
    return WaitForSignal(ctx.input["bell"], ctx.input["bell_key"], ctx.round)


LINEAR4 = Definition("linear4", tuple(Step(name, partial(step, place)) for place, name in enumerate(STEPS)))
SLEEPER = Definition("sleeper", (Step("z", sleep),))
WAITER = Definition("waiter", (Step("w", wait),))


@dataclass(frozen=True)
class Waiting:
    """A summary as the fan-out sees it."""

    summary_id: str
    round: int = 1


class AllWaiting:
    """The summaries port of the fan-out: `<source>-000000` and on; the source ends with their number."""

    async def waiting(self, topic: str, source_id: str, after: str, limit: int) -> Any:
        begin = int(after.rpartition("-")[2]) + 1 if after else 0
        return [Waiting(one) for one in listeners(source_id)[begin : begin + limit]]


def listeners(source_id: str) -> list[str]:
    """Ids of the summaries that listen to a source."""
    return [f"{source_id}-{number:06}" for number in range(int(source_id.rpartition("x")[2]))]


def definitions(publisher: Publisher) -> list[Definition]:
    summaries: Any = AllWaiting()
    fanout = stream_fanout.definition(stream_fanout.FanoutPorts(summaries, publisher))
    return [LINEAR4, SLEEPER, WAITER, fanout]


def plans() -> list[Plan]:
    return [LINEAR4.plan, SLEEPER.plan, WAITER.plan, STREAM_FANOUT]
