"""The same small workload for every engine, measured by the same lines.

| | measured |
|---|---|
| W1a | four no-op durable steps, one worker process: all accepted, then awaited; and 32 callers that start and wait |
| W1b | one at a time: p50 and p95 from start to result seen |
| W1c | durable accepts while no worker runs |
| W1d | steps of 0.2 s in flight, kill -9, restart: seconds until all have ended, beside the same without a kill |
| W2 | durable sleeps of 5 s: seconds beyond 5, memory |
| W3 | waiting workflows, all signalled: seconds until all have ended |
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from tests.bench.meter import Meter, Pids, at_share, calm, memory_mb, peaks

Kind = Literal["linear4", "sleeper", "waiter"]
Figures = dict[str, Any]
T = TypeVar("T")
CALLERS = 32
IN_FLIGHT = 128
WARM_UP = 50


@dataclass(frozen=True)
class Sizes:
    """How many of each, and for how long."""

    throughput: int = 500
    latency: int = 50
    accepts: int = 1000
    recovery: int = 100
    step_s: float = 0.2
    sleeps: int = 1000
    sleep_s: float = 5.0
    signals: int = 500
    many_signals: int = 5000
    waiters: int = 10_000
    idle_s: float = 60.0
    calm_s: float = 4.0  # to wait at most until others let the machine be


TINY = Sizes(6, 2, 6, 3, 0.05, 4, 0.2, 4, 8, 10, 0.3, 0.0)
"""To see that everything works; its figures say nothing."""


class Engine(Protocol):
    """A workflow engine with its servers, and one worker process that can be started, stopped and killed.

    `key` names a workflow. `accept` has returned when the workflow is durable, `ended` when all of them have ended.
    """

    name: str
    settings: str

    def versions(self) -> dict[str, str]: ...
    def pids(self) -> Pids: ...
    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def start_worker(self, at_once: int) -> None: ...
    async def stop_worker(self) -> None: ...
    async def kill_worker(self) -> None: ...
    async def accept(self, kind: Kind, key: str, seconds: float = 0.0) -> None: ...
    async def ended(self, keys: list[str]) -> None: ...
    async def run(self, key: str) -> None: ...
    async def waiting(self, keys: list[str]) -> None: ...
    async def ring(self, key: str) -> None: ...


async def measured(engine: Engine, sizes: Sizes, parts: Iterable[str]) -> Figures:
    """The figures of these parts (`w1a` …) of the workload."""
    found: Figures = {"versions": engine.versions(), "settings": engine.settings}
    known = {"w1a": throughput, "w1b": latency, "w1c": accepts, "w1d": recovery, "w2": sleeps, "w3": signals}
    for name in parts:
        if name in known:
            found |= await known[name](engine, sizes)
    return found


async def at_once(call: Callable[[str], Awaitable[T]], keys: Iterable[str], callers: int = CALLERS) -> None:
    """`call` with each key, by so many callers."""
    left = iter(keys)

    async def caller() -> None:
        for key in left:
            await call(key)

    await asyncio.gather(*(caller() for _ in range(callers)))


def keys(kind: str, count: int) -> list[str]:
    """Names that were never used before, alike up to the last hyphen."""
    begun = f"{kind}{time.time_ns()}"
    return [f"{begun}-{number}" for number in range(count)]


async def all_accepted(engine: Engine, kind: Kind, names: list[str], seconds: float = 0.0) -> None:
    await at_once(lambda key: engine.accept(kind, key, seconds), names)


async def throughput(engine: Engine, sizes: Sizes) -> Figures:
    await engine.start_worker(CALLERS)
    await at_once(engine.run, keys("warm", min(WARM_UP, sizes.throughput)))
    count = sizes.throughput
    calm(sizes.calm_s)
    with Meter(engine.pids()) as all_first:
        names = keys("open", count)
        await all_accepted(engine, "linear4", names)
        await engine.ended(names)
    calm(sizes.calm_s)
    with Meter(engine.pids()) as closed:
        await at_once(engine.run, keys("closed", count))
    await engine.stop_worker()
    return {
        "w1a_per_s": count / all_first.wall_s,
        "w1a_closed32_per_s": count / closed.wall_s,
        "w1a_cpu_ms": sum(all_first.cpu.values()) / count * 1000,
        "w1a_closed32_cpu_ms": sum(closed.cpu.values()) / count * 1000,
        "w1a_cpu_ms_by_process": all_first.ms_each(count),
        "w1a_others_cores": all_first.others / all_first.wall_s,
    }


async def latency(engine: Engine, sizes: Sizes) -> Figures:
    await engine.start_worker(CALLERS)
    await at_once(engine.run, keys("warm", min(WARM_UP, sizes.latency)))
    calm(sizes.calm_s)
    took: list[float] = []
    for key in keys("one", sizes.latency):
        began = time.perf_counter()
        await engine.run(key)
        took.append((time.perf_counter() - began) * 1000)
    await engine.stop_worker()
    return {"w1b_p50_ms": at_share(took, 0.5), "w1b_p95_ms": at_share(took, 0.95)}


async def accepts(engine: Engine, sizes: Sizes) -> Figures:
    names = keys("accept", sizes.accepts)
    calm(sizes.calm_s)
    with Meter(engine.pids()) as meter:
        await all_accepted(engine, "linear4", names)
    await engine.start_worker(IN_FLIGHT)
    await engine.ended(names)
    await engine.stop_worker()
    return {"w1c_per_s": sizes.accepts / meter.wall_s}


async def recovery(engine: Engine, sizes: Sizes) -> Figures:
    await engine.start_worker(IN_FLIGHT)
    names = keys("unharmed", sizes.recovery)
    began = time.perf_counter()
    await all_accepted(engine, "linear4", names, sizes.step_s)
    await engine.ended(names)
    unharmed_s = time.perf_counter() - began
    names = keys("killed", sizes.recovery)
    await all_accepted(engine, "linear4", names, sizes.step_s)
    await asyncio.sleep(1.5 * sizes.step_s)
    await engine.kill_worker()
    killed = time.perf_counter()
    await engine.start_worker(IN_FLIGHT)
    await engine.ended(names)
    recovered_s = time.perf_counter() - killed
    await engine.stop_worker()
    return {"w1d_recovery_s": recovered_s, "w1d_unharmed_s": unharmed_s}


async def sleeps(engine: Engine, sizes: Sizes) -> Figures:
    await engine.start_worker(IN_FLIGHT)
    idle = {name: memory_mb(pid) for name, pid in engine.pids().items()}
    names = keys("sleep", sizes.sleeps)
    calm(sizes.calm_s)
    async with peaks(engine.pids()) as peak:
        began = time.perf_counter()
        await all_accepted(engine, "sleeper", names, sizes.sleep_s)
        await engine.ended(names)
        beyond_s = time.perf_counter() - began - sizes.sleep_s
    await engine.stop_worker()
    return {"w2_beyond_s": beyond_s, "w2_idle_mb": idle, "w2_peak_mb": dict(peak)}


async def signals(engine: Engine, sizes: Sizes) -> Figures:
    return {"w3_s": await rung(engine, sizes.signals, sizes.calm_s)}


async def rung(engine: Engine, count: int, calm_s: float) -> float:
    """Seconds from the first signal until all `count` waiting workflows have ended."""
    await engine.start_worker(IN_FLIGHT)
    names = keys("wait", count)
    await all_accepted(engine, "waiter", names)
    await engine.waiting(names)
    calm(calm_s)
    began = time.perf_counter()
    await at_once(engine.ring, names)
    await engine.ended(names)
    took_s = time.perf_counter() - began
    await engine.stop_worker()
    return took_s
