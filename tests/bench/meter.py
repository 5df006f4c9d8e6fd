"""CPU seconds and memory of whole process trees, and what else the machine did meanwhile.

Client, worker and server share the cores, so CPU per workflow compares more steadily than time. Needs only psutil: the
peers' environment has nothing of ours.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

Pids = dict[str, int]  # what a process is for: its pid


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, its children, and those of its children that have ended."""
    total = 0.0
    for place, process in enumerate(_tree(pid)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + (times.children_user + times.children_system if place == 0 else 0)
    return total


def memory_mb(pid: int) -> float:
    """Memory of a process tree; what several of its processes share counts once."""
    total = 0
    for process in _tree(pid):
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return round(total / 1e6, 1)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def machine_s() -> float:
    """Busy CPU seconds of the whole machine since it started."""
    first = Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, _, _, irq, softirq, *_ = (int(ticks) for ticks in first.split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def calm(at_most_s: float, share: float = 0.3) -> None:
    """Wait until the machine uses less than `share` of a core, for a while at most."""
    end = time.perf_counter() + at_most_s
    while time.perf_counter() < end:
        before = machine_s()
        time.sleep(0.5)
        if (machine_s() - before) / 0.5 < share:
            return


class Meter:
    """What a block took: `wall_s`, `cpu` by process, and `others`, the CPU seconds of whatever else ran here."""

    def __init__(self, pids: Pids) -> None:
        self._pids = pids
        self.wall_s = 0.0
        self.cpu: dict[str, float] = {}
        self.others = 0.0

    def __enter__(self) -> "Meter":
        self._machine, self._own = machine_s(), _own_cpu_s()
        self._before = {name: cpu_s(pid) for name, pid in self._pids.items()}
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s = time.perf_counter() - self._began
        self.cpu = {name: cpu_s(pid) - self._before[name] for name, pid in self._pids.items()}
        known = sum(self.cpu.values()) + _own_cpu_s() - self._own
        self.others = max(0.0, machine_s() - self._machine - known)

    def ms_each(self, count: int) -> dict[str, float]:
        """CPU milliseconds of each process for one of `count`."""
        return {name: round(used / count * 1000, 2) for name, used in self.cpu.items()}


def _own_cpu_s() -> float:
    times = os.times()
    return times.user + times.system


@asynccontextmanager
async def peaks(pids: Pids) -> AsyncGenerator[dict[str, float]]:
    """The largest memory in MB of each process while the block runs."""
    found: dict[str, float] = {}

    async def look() -> None:
        while True:
            for name, pid in pids.items():
                found[name] = max(found.get(name, 0.0), memory_mb(pid))
            await asyncio.sleep(0.5)

    looking = asyncio.create_task(look())
    try:
        yield found
    finally:
        looking.cancel()


def at_share(values: Iterable[float], share: float) -> float:
    """The value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
