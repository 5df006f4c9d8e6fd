"""Workers and producers as processes: each part is played by one after the other, whoever kills them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from app.tether import tethered
from tests.chaos.death import TELL
from tests.chaos.plan import Plan

RESTART_PAUSE_S = 0.1
GRACE_S = 10.0
"""Whoever is asked to end does so in this time, even while a server is away: its present steps are short."""
TELLING_S = 1.0
STOPPED = "stopped"
ENDS = {
    -signal.SIGKILL: "killed",
    137: "died at a boundary",
    9: "poisoned",
    0: STOPPED,
    -signal.SIGTERM: STOPPED,  # asked before it could listen
}
"""What an exit status means. Any other one is a fault of ours."""


@dataclass
class Part:
    """A place in the crew and the process that fills it now."""

    role: str
    index: int
    number: int = 0
    name: str = ""
    process: asyncio.subprocess.Process | None = None


class Crew:
    """Keeps every part filled. `ends` counts how processes ended, `died_at` says when (seconds since 1970)."""

    def __init__(self, plan: Plan, environment: dict[str, str], folder: Path) -> None:
        self._plan, self._environment, self._folder = plan, environment, folder
        self._parts: dict[tuple[str, int], Part] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self._stops: list[asyncio.Task[None]] = []
        self._calm = self._closing = False
        self.ends: Counter[str] = Counter()
        self.died_at: dict[str, float] = {}
        self.wrong_clocks = 0
        self.surprises: list[str] = []

    def fill(self, role: str, parts: int) -> None:
        """Begin to keep so many processes of a role alive."""
        for index in range(1, parts + 1):
            part = self._parts[(role, index)] = Part(role, index)
            self._keepers.append(asyncio.create_task(self._keep(part)))

    def send(self, role: str, index: int, how: signal.Signals) -> None:
        """Send a signal to whoever fills the part now."""
        process = self._parts[(role, index)].process
        if process is not None and process.returncode is None:
            os.kill(process.pid, how)  # Popen's own way looks for its end first, and takes it from asyncio's watcher

    async def stop(self, role: str, index: int) -> None:
        """Ask whoever fills the part to end. Who does not in time is reported, says where it stands, and is killed."""
        part = self._parts[(role, index)]
        name, process = part.name, part.process
        if process is None:
            return
        self.send(role, index, signal.SIGTERM)
        try:
            async with asyncio.timeout(GRACE_S):
                await process.wait()
        except TimeoutError:
            self.surprises.append(f"{name} did not end in {GRACE_S:g} s when asked: see {self.log_of(name)}")
            self.send(role, index, TELL)
            await asyncio.sleep(TELLING_S)
            self.send(role, index, signal.SIGKILL)

    def calm(self) -> None:
        """From now on nobody dies by himself: everyone is asked to end, and replaced by a calm one."""
        self._calm = True
        for part in self._parts.values():
            self.send(part.role, part.index, signal.SIGCONT)
            self._stops.append(asyncio.create_task(self.stop(part.role, part.index)))

    async def close(self) -> None:
        """End all processes."""
        self._closing = True
        await asyncio.gather(*self._stops, *(self.stop(*place) for place in self._parts), *self._keepers)

    async def _keep(self, part: Part) -> None:
        while not self._closing:
            part.number += 1
            life = self._plan.life(part.role, part.index, part.number, calm=self._calm)
            part.name = life.name
            self.wrong_clocks += life.clock_shift_s != 0
            environment = {
                "CHAOS_NAME": life.name,
                "CHAOS_SEED": str(self._plan.seed),
                "CHAOS_CALM": "1" if self._calm else "",
                "CHAOS_CLOCK_SHIFT_S": str(life.clock_shift_s),
                "CHAOS_CRASH_AT": life.crash_at,
                "CHAOS_CRASH_PASSING": str(life.passing),
            }
            part.process = await self._spawn(part, environment)
            if self._closing:
                self.send(part.role, part.index, signal.SIGKILL)
            self._ended(part.name, await part.process.wait())
            await asyncio.sleep(RESTART_PAUSE_S)

    async def _spawn(self, part: Part, environment: dict[str, str]) -> asyncio.subprocess.Process:
        command = [sys.executable, "-m", f"tests.chaos.{part.role}"]
        with self.log_of(part.name).open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *tethered(command),
                env=os.environ | self._environment | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _ended(self, name: str, code: int) -> None:
        self.died_at[name] = time.time()
        self.ends[f"{name.rstrip('.0123456789')} {ENDS.get(code, 'ended by itself')}"] += 1
        if code not in ENDS:
            self.surprises.append(f"{name} ended by itself with status {code}: see {self.log_of(name)}")

    def errors(self) -> list[str]:
        """What processes wrote that they themselves took for a fault of ours."""
        lines = [(log.stem, line) for log in sorted(self._folder.glob("[wp]*.log")) for line in log.open()]
        return [f"{name} wrote {line.strip()}" for name, line in lines if " ERROR " in line or " CRITICAL " in line]

    def log_of(self, name: str) -> Path:
        """Where a process's output goes."""
        return self._folder / f"{name}.log"
