"""A producer process of the run: accepts requests and does what callers do, and may die anywhere in it.

Whatever it leaves half done, the next one finds in the objects and does again.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from kernel import KernelError
from kernel.dispatch import AnotherRound
from tests.chaos import death, requests
from tests.chaos.ledger import ObjectInput
from tests.chaos.shapes import bell, biz_key_of
from tests.chaos.world import World, opened

MOST_OPEN = 60
"""Nothing is accepted while so many objects are being worked on."""
LONGEST_REST_S = 0.2
FORGOTTEN = 0.1
"""Share of accepted requests whose caller does not go on to register them."""
SOME = 5

Act = Callable[[], Awaitable[None]]


class Producer:
    """Callers of all kinds. `accepted` is a file that holds what was acknowledged, outside of any database."""

    def __init__(self, world: World, random: Random, accepted: Path) -> None:
        self._world, self._ledger = world, world.ledger
        self._random = random
        self._requests = requests.drawn(random, world.name)
        self._accepted = accepted

    def acts(self, *, calm: bool) -> dict[Act, int]:
        """What it does, and how often. A calm one accepts nothing new."""
        upkeep: dict[Act, int] = {
            self.ring: 3,
            self.tell_ready: 2,
            self.try_again: 3,
            self.remove: 2,
            self.release_parked: 1,
        }
        return upkeep if calm else {**upkeep, self.accept: 12, self.hurry: 1}

    async def work(self, stopping: asyncio.Event, *, calm: bool) -> None:
        """One act after the other, until asked to stop."""
        acts = self.acts(calm=calm)
        while not stopping.is_set():
            act = self._random.choices([*acts], [*acts.values()])[0]
            try:
                await act()
            except KernelError as error:
                logging.info("%s: %s", getattr(act, "__name__", act), error)
            await asyncio.sleep(self._random.uniform(0.0, LONGEST_REST_S))

    async def accept(self) -> None:
        """A request: one write, then registration. Sometimes it is sent twice."""
        if await self._ledger.count("objects", {"state": "working"}) >= MOST_OPEN:
            return
        request = next(self._requests)
        for _ in range(2 if self._random.random() < 0.05 else 1):
            await self._ledger.accept(request)
            self._acknowledge(request.object_id)
            if self._random.random() >= FORGOTTEN:
                await self._dispatch(request.object_id, 1)

    def _acknowledge(self, object_id: str) -> None:
        with self._accepted.open("a") as file:
            file.write(f"{object_id}\n")

    async def _dispatch(self, object_id: str, round: int) -> None:
        with suppress(AnotherRound):
            await self._world.dispatcher.dispatch(object_id, round)

    async def hurry(self) -> None:
        """Somebody asks again for what is running, more urgently."""
        for found in await self._ledger.find({"state": "working", "priority": {"$gt": 0}}, 1):
            values = ObjectInput(found["_id"], found["tenant"], found["round"])
            await self._world.parts.publisher.start_or_resume(
                found["shape"], biz_key_of(found["_id"]), values, round=found["round"], priority=0
            )
            await self._ledger.mark(found["_id"], priority=0)

    async def ring(self) -> None:
        """The second bell of listeners whose time has come, now and then twice."""
        condition = {"shape": "listener", "rung": {"$ne": True}}
        for found in await self._ledger.find(condition, SOME, due="ring_at"):
            for _ in range(self._random.choice((1, 1, 2))):
                await self._world.parts.publisher.deliver_signal(bell(found["_id"], 2))
            await self._ledger.mark(found["_id"], rung=True)

    async def tell_ready(self) -> None:
        """Rings for facts that became true, as far as anybody does."""
        condition = {"shape": "patient", "told": True, "rung": {"$ne": True}}
        for found in await self._ledger.find(condition, SOME, due="ready_at"):
            await self._world.parts.publisher.deliver_signal(bell(found["_id"], 1))
            await self._ledger.mark(found["_id"], rung=True)

    async def try_again(self) -> None:
        """A person begins the next round as soon as the object shows its failure."""
        condition = {"state": "failed", "$expr": {"$lt": ["$round", "$rounds"]}}
        for found in await self._ledger.find(condition, SOME):
            if await self._ledger.begin_round(found):
                await self._dispatch(found["_id"], found["round"] + 1)

    async def remove(self) -> None:
        """An owner removes what is being worked on: first the object, then the workflow."""
        for found in await self._ledger.find({"state": "working"}, SOME, due="remove_at"):
            if await self._ledger.remove(found["_id"]):
                await self._world.clear(found["_id"], found["round"])

    async def release_parked(self) -> None:
        """An operator lets parked workflows go on."""
        for workflow_id in await self._ledger.parked(SOME):
            await self._world.parts.instances.release_parked(workflow_id)


async def run(name: str) -> None:
    """Act until SIGTERM."""
    stopping = death.stopping_event()
    random = Random(f"{os.environ['CHAOS_SEED']}/{name}/requests")
    async with opened(name) as world:
        producer = Producer(world, random, Path(os.environ["CHAOS_ACCEPTED"]))
        await producer.work(stopping, calm=bool(os.environ.get("CHAOS_CALM")))


if __name__ == "__main__":
    death.arm()
    asyncio.run(run(os.environ["CHAOS_NAME"]))
