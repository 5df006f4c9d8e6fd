"""Carries a plan of faults out on the real processes."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable
from time import monotonic

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tests.chaos.crew import Crew
from tests.chaos.line import Line
from tests.chaos.plan import Fault, Plan
from tests.chaos.servers import PrivateServer
from tests.chaos.windows import Span

SIGNALS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP}


class Mayhem:
    """`done` counts faults by kind; `lost` are the spans (ms since 1970) from Valkey's loss of memory to its return."""

    def __init__(self, crew: Crew, servers: dict[str, PrivateServer], line: Line, say: Callable[[str], None]) -> None:
        self._crew, self._servers, self._line, self._say = crew, servers, line, say
        self.done: Counter[str] = Counter()
        self.lost: list[Span] = []

    async def run(self, plan: Plan) -> None:
        """Do everything at its time, and return when the last fault is healed."""
        began = monotonic()
        async with asyncio.TaskGroup() as under_way:
            for fault in plan.faults:
                await asyncio.sleep(max(began + fault.at_s - monotonic(), 0))
                self._say(f"{monotonic() - began:7.1f} s  {fault.kind} {fault.index}")
                self.done[fault.kind] += 1
                under_way.create_task(self._carry_out(fault))

    async def _carry_out(self, fault: Fault) -> None:
        act = fault.kind.split()[0]
        server = self._servers.get(fault.role)
        if act == "flush":
            await self._flush()
        elif act == "delay":
            await self._line.hold(fault.for_s)
        elif act == "stop":
            await self._crew.stop(fault.role, fault.index)
        elif server is None:
            await self._hit_process(fault, SIGNALS[act])
        elif act == "kill":
            await self._restart(server, fault)
        else:
            await self._pause(server, fault)

    async def _hit_process(self, fault: Fault, how: signal.Signals) -> None:
        self._crew.send(fault.role, fault.index, how)
        if how == signal.SIGSTOP:
            await asyncio.sleep(fault.for_s)
            self._crew.send(fault.role, fault.index, signal.SIGCONT)

    async def _restart(self, server: PrivateServer, fault: Fault) -> None:
        killed_at = time.time()
        await server.kill()
        await asyncio.sleep(fault.for_s)
        await server.start()
        if fault.role == "valkey":
            self.lost.append((killed_at * 1000, time.time() * 1000))

    async def _pause(self, server: PrivateServer, fault: Fault) -> None:
        server.send(signal.SIGSTOP)
        await asyncio.sleep(fault.for_s)
        server.send(signal.SIGCONT)

    async def _flush(self) -> None:
        """FLUSHALL. A Valkey that is down or paused just now has nothing to flush, or does it a little later."""
        began = time.time()
        client = Redis.from_url(self._servers["valkey"].url, socket_timeout=10)
        try:
            await client.flushall()
        except RedisError as error:
            self._say(f"           (not flushed: {error})")
        finally:
            await client.aclose()
        self.lost.append((began * 1000, time.time() * 1000))
