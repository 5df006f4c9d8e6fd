"""Keeps processes alive: one that ends without being asked to is started again at once, on its own port.

A part that keeps ending soon after its start is tried less and less often. Nothing started here outlives this process.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from app.tether import tethered

SOON_S = 10.0
"""A part that lived shorter than this has failed rather than been killed."""
LONGEST_PAUSE_S = 15.0
HOPELESS = 4
"""So many failures in a row before it was ever ready mean that it cannot start."""


@dataclass(frozen=True)
class Part:
    """A process to keep alive. `names` gives a name to each process that plays it, the first and every replacement."""

    role: str
    port: int
    command: list[str]
    names: Callable[[], str]
    env: Callable[[str], dict[str, str]] = lambda name: {}


@dataclass
class Kept:
    """A part and the process that plays it now."""

    part: Part
    name: str
    process: asyncio.subprocess.Process
    started_at: float = field(default_factory=time.monotonic)
    failures: int = 0

    @property
    def hopeless(self) -> bool:
        """It failed so often in a row that waiting for it makes no sense."""
        return self.failures >= HOPELESS

    @property
    def lived_s(self) -> float:
        return time.monotonic() - self.started_at

    @property
    def pause_s(self) -> float:
        """How long to wait before the next start: not at all after a first failure, then 0.5, 1, 2 … 15 s."""
        return 0.0 if self.failures < 2 else min(0.5 * 2 ** (self.failures - 2), LONGEST_PAUSE_S)


class Supervisor:
    """Starts parts, replaces their processes, ends them. `say` gets a line for people, `changed` a call per change."""

    def __init__(self, logs: Path, say: Callable[[str], None], changed: Callable[[], None], lock_fd: int) -> None:
        self.kept: list[Kept] = []
        self._logs, self._say, self._changed, self._lock_fd = logs, say, changed, lock_fd
        self._keepers: set[asyncio.Task[None]] = set()
        self._stopping: set[str] = set()

    async def start(self, part: Part) -> Kept:
        """Start a part and keep it alive from now on."""
        name = part.names()
        kept = Kept(part, name, await self._spawn(part, name))
        self.kept.append(kept)
        self._keepers.add(asyncio.create_task(self._keep(kept)))
        return kept

    async def replace(self, roles: Collection[str]) -> None:
        """Ask the processes of these roles to end; their replacements follow by themselves."""
        for kept in self.kept:
            if kept.part.role in roles:
                _signal(kept, signal.SIGTERM)

    async def stop(self, roles: Collection[str], timeout_s: float) -> None:
        """End all processes of these roles for good: asked first, killed after `timeout_s`."""
        self._stopping |= set(roles)
        ending = [kept for kept in self.kept if kept.part.role in roles]
        for kept in ending:
            _signal(kept, signal.SIGTERM)
        waits = [asyncio.create_task(kept.process.wait()) for kept in ending]
        if not waits:
            return
        _, late = await asyncio.wait(waits, timeout=timeout_s)
        for kept in ending if late else []:
            _signal(kept, signal.SIGKILL)
        await asyncio.gather(*waits)
        self.kept = [kept for kept in self.kept if kept not in ending]

    async def close(self) -> None:
        """Stop keeping anything alive; call it after the last `stop`."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    def log_of(self, name: str) -> Path:
        """Where a process's output goes."""
        return self._logs / f"{name}.log"

    async def _keep(self, kept: Kept) -> None:
        while True:
            code = await kept.process.wait()
            if kept.part.role in self._stopping:
                return
            kept.failures = kept.failures + 1 if kept.lived_s < SOON_S else 0
            old, kept.name = kept.name, kept.part.names()
            then = f"in {kept.pause_s:.1f} s" if kept.pause_s else "now"
            self._say(f"{old} ended ({how_ended(code)}); starting {kept.name} {then} — see {self.log_of(old)}")
            await asyncio.sleep(kept.pause_s)
            if kept.part.role in self._stopping:
                return
            kept.process = await self._spawn(kept.part, kept.name)
            kept.started_at = time.monotonic()
            if kept.part.role in self._stopping:  # `stop` came while it was being started and knows only the old one
                _signal(kept, signal.SIGKILL)
            else:
                self._changed()

    async def _spawn(self, part: Part, name: str) -> asyncio.subprocess.Process:
        with self.log_of(name).open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *tethered(part.command),
                env=os.environ | part.env(name),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(self._lock_fd,),
                start_new_session=True,  # Ctrl-C reaches this process only, which ends the others in order
            )


def _signal(kept: Kept, how: signal.Signals) -> None:
    if kept.process.returncode is None:
        kept.process.send_signal(how)


def how_ended(code: int) -> str:
    """An exit status in words: `SIGKILL`, `exit status 1`."""
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"
