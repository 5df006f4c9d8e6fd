"""`make mutate`: would the matrices notice a missing guard?

For every marked write of the kernel that a scenario passes, and every marked business write, one mutant for each token
or round in its condition forgets that. The mutants are found by watching the conditions that the writes really send;
none is written by hand.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from activities.adapters.objects import Objects
from app.embedded import embedded_servers
from kernel import Clock, faults
from kernel.driver import open_database, open_mongo
from kernel.testing import crash_at
from tests.crash import late_intents, late_rounds
from tests.crash.conftest import check, emptied, outcome
from tests.crash.haunting import returns_after_the_end, returns_beside_another
from tests.crash.scenarios import SCENARIOS, WITHOUT_CLAIM
from tests.kernel_kit import Kit, open_kit
from tests.story_kit import open_story

GUARDS = ("claim_token", "round", "workflow_dispatch.claim_token", "workflow_dispatch.fencing_token")
Mutant = tuple[str, str]  # (method, key of its condition)


class Forgetful:
    """A collection that drops one key from the conditions of one method, and notes what conditions there are."""

    def __init__(self, real: Any, state: "Mutation") -> None:
        self._real = real
        self._state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def find_one_and_update(self, condition: dict[str, Any], *args: Any, **options: Any) -> Any:
        return await self._real.find_one_and_update(self._state.loosened(condition), *args, **options)

    async def apply(self, condition: dict[str, Any], *args: Any, **options: Any) -> Any:
        return await self._real.apply(self._state.loosened(condition), *args, **options)

    async def find_one(self, condition: dict[str, Any], *args: Any, **options: Any) -> Any:
        return await self._real.find_one(self._state.loosened(condition), *args, **options)

    async def update_one(self, condition: dict[str, Any], *args: Any, **options: Any) -> Any:
        return await self._real.update_one(self._state.loosened(condition), *args, **options)


class Mutation:
    """Which guard is missing now, and which guards were seen."""

    def __init__(self) -> None:
        self.missing: Mutant | None = None
        self.seen: set[Mutant] = set()

    def loosened(self, condition: dict[str, Any]) -> dict[str, Any]:
        method = faults.passing.get()
        self.seen |= {(method, key) for key in condition if key in GUARDS}
        return {key: value for key, value in condition.items() if (method, key) != self.missing}


def watch(kit: Kit, mutation: Mutation) -> None:
    """Put every store of the kit behind the mutation."""
    for store in (kit.parts.store, kit.parts.instances, kit.parts.inbox):
        store._collection = Forgetful(store._collection, mutation)
    for store in (kit.parts.store, kit.parts.instances, kit.parts.inbox):
        store._commits = Forgetful(store._commits, mutation)
    kit.business.objects = Forgetful(kit.business.objects, mutation)
    kit.desk.intents._collection = Forgetful(kit.desk.intents._collection, mutation)


async def baseline(kit: Kit) -> dict[str, tuple[dict[str, int], dict[str, Any]]]:
    found = {}
    for name, scenario in SCENARIOS.items():
        await emptied(kit)
        with crash_at("nowhere") as death:
            await scenario(kit)
        found[name] = ({point: death.passed.count(point) for point in set(death.passed)}, await outcome(kit))
    return found


async def survives(kit: Kit, method: str, baselines: dict[str, Any]) -> bool:
    """Whether every haunting of this method still ends well."""
    if method in late_intents.late_writes():
        await emptied(kit)
        with crash_at("nowhere"):
            return await late_intents.changes_nothing(kit.desk, method)
    point = f"{method}:before"
    for name, skip, expected in _hauntings(point, baselines):
        try:
            await emptied(kit)
            if not method.startswith(WITHOUT_CLAIM):
                before, after = await returns_beside_another(kit, name, point, skip) or (None, None)
                assert before == after
                await emptied(kit)
            await returns_after_the_end(kit, name, point, skip)
            await check(kit, expected, name)
        except AssertionError:
            return False
    return True


def _hauntings(point: str, baselines: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for name, (passed, expected) in baselines.items():
        yield from ((name, skip, expected) for skip in range(passed.get(point, 0)))


async def kernel_survivors(database: Any, redis: Redis) -> AsyncIterator[tuple[Mutant, bool]]:
    """Each mutant of the kernel's writes, and whether it survives the zombie matrix."""
    kit, mutation = await open_kit(database, redis, "mutate", Clock()), Mutation()
    watch(kit, mutation)
    baselines = await baseline(kit)
    for mutant in sorted(one for one in mutation.seen if one[0]):
        mutation.missing = mutant
        yield mutant, await survives(kit, mutant[0], baselines)
        await emptied(kit)


async def business_survivors(database: Any, redis: Redis) -> AsyncIterator[tuple[Mutant, bool]]:
    """Each mutant of the business writes, and whether a write of an older round still changes nothing."""
    story, mutation = await open_story(database, redis, "mutate", Clock()), Mutation()
    await story.subscribe()
    await story.settle()
    for records in (story.sessions, story.transcripts, story.summaries):
        for holder in (records, *(one for one in vars(records).values() if isinstance(one, Objects))):
            holder._collection = Forgetful(holder._collection, mutation)
    with crash_at("nowhere"):  # while a hook is armed, the method that runs is known
        for write in late_rounds.late_writes():
            assert await late_rounds.changes_nothing(story, write), write
        for mutant in sorted(one for one in mutation.seen if one[0] in late_rounds.late_writes()):
            mutation.missing = mutant
            yield mutant, await late_rounds.changes_nothing(story, mutant[0])


async def run(mongo_url: str, redis_url: str) -> int:
    """Try every mutant; how many survived."""
    database = open_database(open_mongo(mongo_url), "baton_mutate")
    redis = Redis.from_url(redis_url)
    generated = survived = 0
    for survivors in (kernel_survivors, business_survivors):
        async for mutant, alive in survivors(database, redis):
            print(f"{'SURVIVED' if alive else 'killed  '} {mutant[0]} without {mutant[1]}", flush=True)
            generated, survived = generated + 1, survived + alive
    print(f"{generated - survived} killed / {generated} generated")
    await redis.aclose()
    return survived


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, embedded_servers(Path(folder)) as urls:
        return 1 if asyncio.run(run(urls.mongo, urls.redis)) else 0


if __name__ == "__main__":
    sys.exit(main())
