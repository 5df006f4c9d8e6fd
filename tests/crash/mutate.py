"""`make mutate`: would the matrices notice a missing guard?

For every marked write that a scenario passes and that is conditional on a token or a round, one mutant forgets that
condition. The mutants are found by watching the conditions that the writes really send; none is written by hand.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from app.embedded import embedded_servers
from kernel import Clock, faults
from kernel.driver import open_database, open_mongo
from kernel.testing import crash_at
from tests.crash.conftest import check, emptied, outcome
from tests.crash.haunting import returns_after_the_end, returns_beside_another
from tests.crash.scenarios import ELSEWHERE, SCENARIOS, WITHOUT_CLAIM
from tests.kernel_kit import Kit, open_kit

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
    kit.business.objects = Forgetful(kit.business.objects, mutation)


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
    point = f"{method}:before"
    for name, skip, expected in _hauntings(point, baselines):
        try:
            await emptied(kit)
            if not method.startswith(WITHOUT_CLAIM):
                before, after = await returns_beside_another(kit, name, point, skip)
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


async def run(mongo_url: str, redis_url: str) -> int:
    """Try every mutant; how many survived."""
    database = open_database(open_mongo(mongo_url), "baton_mutate")
    redis = Redis.from_url(redis_url)
    kit, mutation = await open_kit(database, redis, "mutate", Clock()), Mutation()
    watch(kit, mutation)
    baselines = await baseline(kit)
    mutants = sorted(one for one in mutation.seen if one[0] and not one[0].startswith(ELSEWHERE))
    survivors = []
    for mutant in mutants:
        mutation.missing = mutant
        alive = await survives(kit, mutant[0], baselines)
        print(f"{'SURVIVED' if alive else 'killed  '} {mutant[0]} without {mutant[1]}", flush=True)
        survivors += [mutant] if alive else []
    print(f"{len(mutants) - len(survivors)} killed / {len(mutants)} generated")
    await redis.aclose()
    return len(survivors)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, embedded_servers(Path(folder)) as urls:
        return 1 if asyncio.run(run(urls.mongo, urls.redis)) else 0


if __name__ == "__main__":
    sys.exit(main())
