"""`python -m tests.chaos`: real processes under random faults, and afterwards a look at every effect they had.

    --minutes M (CHAOS_MINUTES)   how long faults last; 100 seconds if not given
    --seed S (SEED)               the plan of faults; a random one if not given, printed either way

Exit status 1: something was lost, doubled, stuck or broken; data and logs are then kept.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from app.embedded import Valkey
from kernel import faults
from kernel.driver import open_database, open_mongo
from tests.chaos import plan as plans
from tests.chaos.crew import Crew
from tests.chaos.drain import drained, still_open
from tests.chaos.history import History
from tests.chaos.line import Line
from tests.chaos.mayhem import Mayhem
from tests.chaos.plan import Plan
from tests.chaos.report import figures, shown
from tests.chaos.servers import OftenCheckpointed, PrivateServer
from tests.chaos.verdict import Verdict, judge
from tests.chaos.world import DATABASE, ensure_indexes, opened

DEFAULT_S = 100.0
PARTS = {"worker": 4, "producer": 2, "mongo": 1, "valkey": 1}
PATIENCE_S = 60.0
HELD = 0.4
"""Share of the connections to MongoDB that are held up when some are."""


class Run:
    """One run in one folder."""

    def __init__(self, plan: Plan, folder: Path, servers: dict[str, PrivateServer], line: Line) -> None:
        self._plan, self._folder, self._servers = plan, folder, servers
        self.accepted = folder / "accepted"
        self.accepted.touch()
        environment = {
            "BATON_MONGO_URL": line.url,
            "BATON_REDIS_URL": servers["valkey"].url,
            "CHAOS_ACCEPTED": str(self.accepted),
        }
        os.environ |= environment
        self.crew = Crew(plan, environment, folder / "logs")
        self.mayhem = Mayhem(self.crew, servers, line, self._log)
        self.history = History(servers["mongo"].url, DATABASE)
        self.verdict = Verdict()

    async def go(self) -> dict[str, Any]:
        """Faults, drain, judgement; returns the figures."""
        following = asyncio.create_task(self.history.follow())
        try:
            await self._prepare()
            await self._disturb()
            return await self._conclude()
        finally:
            await self.crew.close()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await self.history.close()

    async def _prepare(self) -> None:
        await self.history.caught_up("begin")
        async with opened("harness0") as world:
            await ensure_indexes(world)

    async def _disturb(self) -> None:
        self.crew.fill("worker", PARTS["worker"])
        self.crew.fill("producer", PARTS["producer"])
        telling = asyncio.create_task(self._tell())
        await self.mayhem.run(self._plan)
        telling.cancel()
        self.crew.calm()
        print("  faults are over", flush=True)

    async def _tell(self) -> None:
        began = monotonic()
        while True:
            await asyncio.sleep(10)
            counts = self.history.counts
            print(
                f"  {monotonic() - began:5.0f} s: {counts['instances created']} workflows, {counts['claims']} claims, "
                f"{len(self.history.takeovers)} take-overs, {sum(self.crew.ends.values())} processes ended",
                flush=True,
            )

    async def _conclude(self) -> dict[str, Any]:
        client = open_mongo(self._servers["mongo"].url, driver="pymongo", timeout_s=20.0)
        database = open_database(client, DATABASE)
        try:
            if not await drained(database, PATIENCE_S, lambda text: print(text, flush=True)):
                self.verdict.stuck += await still_open(database)
            await self.crew.close()
            await self.history.caught_up("end")
            self._log("\n".join(str(one) for one in self.history.takeovers))
            accepted = set(self.accepted.read_text().split())
            await judge(database, self.history, accepted, self.mayhem.lost, self.verdict)
            self.verdict.broken += self.crew.surprises + self.crew.errors()
            if not self.history.takeovers:
                self.verdict.broken.append("no claim was ever taken over: nothing was tried")
            return await figures(database, self._plan.seed, self.crew, self.mayhem, self.history)
        finally:
            await client.close()

    def _log(self, line: str) -> None:
        with (self._folder / "faults.log").open("a") as file:
            file.write(f"{line}\n")


@asynccontextmanager
async def private_servers(folder: Path) -> AsyncGenerator[dict[str, PrivateServer]]:
    """MongoDB and Valkey of the run."""
    logs = folder / "logs"
    logs.mkdir(parents=True)
    servers = {"mongo": PrivateServer(OftenCheckpointed(folder), logs), "valkey": PrivateServer(Valkey(folder), logs)}
    try:
        for server in servers.values():
            await server.start()
        yield servers
    finally:
        for server in servers.values():
            await server.kill()


async def chaos(seed: int, seconds: float, folder: Path) -> bool:
    """Run once and print the report; whether all went well."""
    plan = plans.drawn(seed, seconds, PARTS, faults.points())
    counts = ", ".join(f"{count} × {kind}" for kind, count in sorted(plan.counts().items()))
    print(f"chaos: SEED={seed}, {seconds:.0f} s of faults on {PARTS['worker']} workers, {PARTS['producer']} producers")
    print(f"  {counts}\n  data and logs: {folder}", flush=True)
    (folder / "plan").write_text("\n".join(map(str, plan.faults)))
    began = monotonic()
    held = random.Random(f"{seed}/line")
    async with private_servers(folder) as servers, Line(servers["mongo"].url, lambda: held.random() < HELD) as line:
        counted = await (run := Run(plan, folder, servers, line)).go()
    print(shown({**counted, "requests_delayed": line.held, "duration_s": round(monotonic() - began, 1)}, run.verdict))
    return run.verdict.good


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Real processes under random faults.")
    minutes = os.environ.get("CHAOS_MINUTES") or DEFAULT_S / 60
    parser.add_argument("--minutes", type=float, default=minutes, help="how long faults last (CHAOS_MINUTES)")
    seed = os.environ.get("SEED") or random.randrange(1_000_000)
    parser.add_argument("--seed", type=int, default=seed, help="what the plan of faults follows from (SEED)")
    parser.add_argument("--keep", action="store_true", help="keep data and logs of a good run too")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="baton-chaos-"))
    good = asyncio.run(chaos(given.seed, given.minutes * 60, folder))
    if good and not given.keep:
        shutil.rmtree(folder, ignore_errors=True)
    elif not good:
        print(f"NOT GOOD: SEED={given.seed}; data and logs are kept in {folder}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
