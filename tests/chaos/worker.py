"""A worker process of the run: the kernel's worker with all its loops on, and short leases."""

import asyncio
import logging
import os

from kernel.worker import Pace, Worker
from tests.chaos import death, wall_clock
from tests.chaos.plan import LEASE_S
from tests.chaos.world import World, opened

SLOTS = 6
PACE = Pace(lease_s=LEASE_S, poll_s=0.3, scan_s=1.0, beat_s=1.0, recover_s=0.7)


def made(world: World) -> Worker:
    duties = (world.dispatcher.recover, world.clear_removed)
    return Worker(
        world.name,
        world.parts,
        world.definitions,
        world.projections,
        world.mutex,
        slots=SLOTS,
        pace=PACE,
        recover=duties,
    )


async def run(name: str) -> None:
    """Work until SIGTERM."""
    stopping = death.stopping_event()
    async with opened(name) as world:
        logging.info("%s believes that it is %s", name, world.parts.clock.hint(0))
        worker = made(world)
        working = asyncio.create_task(worker.run())
        await stopping.wait()
        worker.stop()
        await working


if __name__ == "__main__":
    death.arm()
    wall_clock.shift(int(os.environ.get("CHAOS_CLOCK_SHIFT_S") or 0))
    asyncio.run(run(os.environ["CHAOS_NAME"]))
