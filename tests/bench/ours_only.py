"""What only our engine is measured by: many signals, the product's fan-out, an idle minute, and what a workflow writes.

`writes` counts the commands that reach MongoDB and Valkey for one `linear4` workflow, and the kernel's own durable
writes, each of which is one `@boundary`.
"""

import asyncio
import time
from collections import Counter
from typing import Any

from pymongo import monitoring

from activities.payloads import FanoutInput
from activities.plans import SIGNAL_OF, summary_key
from kernel import faults
from tests.bench import shapes
from tests.bench.meter import Meter, peaks
from tests.bench.ours import Baton
from tests.bench.worker import made, opened
from tests.bench.workload import IN_FLIGHT, Figures, Sizes, at_once, keys, rung

COUNTED = 50


async def measured_too(engine: Baton, sizes: Sizes, parts: list[str]) -> Figures:
    found: Figures = {}
    if "many" in parts:
        found["many_signals_s"] = await rung(engine, sizes.many_signals, sizes.calm_s)
    if "fanout" in parts:
        found |= await fan_out(engine, sizes)
    if "writes" in parts:
        found["writes"] = await writes_each(engine)
    return found


async def fan_out(engine: Baton, sizes: Sizes) -> Figures:
    """Ten thousand waiting workflows: an idle minute, then all of them told by one fan-out of the product."""
    await engine.start_worker(IN_FLIGHT)
    source = f"{keys('source', 1)[0]}x{sizes.waiters}"
    names = [summary_key(one) for one in shapes.listeners(source)]
    job = shapes.Job(0.0, SIGNAL_OF[shapes.TOPIC], source)
    await at_once(lambda name: engine.start("waiter", name, job), names)
    await engine.waiting(names)
    await asyncio.sleep(min(5.0, sizes.idle_s))
    with Meter(engine.pids()) as idle:
        await asyncio.sleep(sizes.idle_s)
    async with peaks(engine.pids()) as peak:
        await asyncio.sleep(1.0)
        before = dict(peak)
        began = time.perf_counter()
        await engine.start("stream_fanout", f"fanout:{source}", FanoutInput(shapes.TOPIC, source, 1))
        await engine.ended([*names, "the fan-out"])
        took_s = time.perf_counter() - began
    await engine.stop_worker()
    return {
        "idle_cores": sum(idle.cpu.values()) / idle.wall_s,
        "idle_cores_by_process": {name: used / idle.wall_s for name, used in idle.cpu.items()},
        "fanout_s": took_s,
        "fanout_before_mb": before,
        "fanout_peak_mb": dict(peak),
    }


class Commands(monitoring.CommandListener):
    """Counts what the driver sends."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        what = event.command.get(event.command_name)
        self.seen[f"{event.command_name} {what if isinstance(what, str) else ''}".strip()] += 1

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...
    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


async def writes_each(engine: Baton) -> Figures:
    """Commands and durable writes of one workflow of four steps, on average; caller and worker share this process."""
    commands, durable = Commands(), Counter[str]()
    monitoring.register(commands)  # for clients that are opened from here on

    async def passed(point: str) -> None:
        name, _, moment = point.rpartition(":")
        durable[name] += moment == "after"

    async with opened(engine.place) as ground:
        worker = made(engine.place, ground)
        working = asyncio.create_task(worker.run())
        await ground.parts.publisher.start_or_resume("linear4", "counted", shapes.Job(), round=1, priority=1)
        await _until_ended(ground, 1)
        synced, asked = await _syncs(ground), await _asked(ground)
        commands.seen.clear()
        faults.arm(passed)
        for name in keys("counted", COUNTED):
            await ground.parts.publisher.start_or_resume("linear4", name, shapes.Job(), round=1, priority=1)
        await _until_ended(engine.ground, COUNTED + 1)
        faults.arm(None)
        found = {
            "durable": _each(durable),
            "mongo": _each(commands.seen),
            "valkey": _each(await _asked(ground) - asked),
            "journal_syncs": (await _syncs(ground) - synced) / COUNTED,
        }
        worker.stop()
        await working
    await engine.stop_worker()
    return found


def _each(counted: Counter[str]) -> dict[str, float]:
    return {name: round(times / COUNTED, 2) for name, times in counted.most_common() if times}


async def _until_ended(ground: Any, count: int) -> None:
    while True:
        if await ground.database["workflow_instances"].count_documents({"status": "completed"}) >= count:
            return
        await asyncio.sleep(0.05)


async def _syncs(ground: Any) -> int:
    status = await ground.database.command("serverStatus")
    return status["wiredTiger"]["log"]["log sync operations"]


async def _asked(ground: Any) -> Counter[str]:
    """Round trips to Valkey so far: of what it counts, commands inside scripts are none."""
    found = await ground.redis.info("commandstats")
    return Counter({name: found.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "publish")})
