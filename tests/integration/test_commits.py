"""Updates that are asked for together: each is made for itself, and who asked learns of his own."""

import asyncio
from typing import Any

import pytest

from kernel.commits import MOST_AT_ONCE, Commits
from kernel.writes import Document, literal


class Watched:
    """A collection that notes how many updates each command carried."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.commands: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def find_one_and_update(self, *args: Any, **options: Any) -> Any:
        self.commands.append(1)
        return await self._real.find_one_and_update(*args, **options)

    async def bulk_write(self, updates: list[Any], **options: Any) -> Any:
        self.commands.append(len(updates))
        return await self._real.bulk_write(updates, **options)


@pytest.fixture
def collection(db: Any) -> Watched:
    return Watched(db["commits"])


async def filled(collection: Any, count: int) -> None:
    await collection.insert_many([{"_id": number, "turn": 0} for number in range(count)])


def taken(by: str) -> list[Document]:
    return [{"$set": {"by": literal(by), "turn": {"$add": ["$turn", 1]}}}]


async def test_each_of_many_learns_whether_its_own_condition_fitted(collection: Watched) -> None:
    await filled(collection, 40)
    commits = Commits(collection)
    wanted = [{"_id": number, "turn": number % 2} for number in range(50)]  # the odd ones do not fit, ten are not there
    found = await asyncio.gather(*(commits.apply(one, taken(f"t{one['_id']}"), by=f"t{one['_id']}") for one in wanted))
    assert [one and one["by"] for one in found] == [
        f"t{number}" if number < 40 and number % 2 == 0 else None for number in range(50)
    ]
    stored = await collection.find({"turn": 1}).to_list(50)
    assert {one["_id"] for one in stored} == set(range(0, 40, 2))


async def test_what_waits_goes_out_together_and_one_alone_waits_for_nobody(collection: Watched) -> None:
    await filled(collection, 3 * MOST_AT_ONCE)
    commits = Commits(collection)
    await commits.apply({"_id": 0}, taken("alone"), by="alone")
    assert collection.commands == [1]
    await asyncio.gather(*(commits.apply({"_id": n}, taken("all"), by="all") for n in range(3 * MOST_AT_ONCE)))
    assert collection.commands[1:] == [MOST_AT_ONCE] * 3


async def test_two_changes_of_one_document_follow_each_other(collection: Watched) -> None:
    await filled(collection, 2)
    commits = Commits(collection)
    asked = [commits.apply({"_id": 0, "turn": turn}, taken(f"t{turn}"), by=f"t{turn}") for turn in (0, 1, 2)]
    found = await asyncio.gather(*asked, commits.apply({"_id": 1}, taken("other"), by="other"))
    assert [one and one["turn"] for one in found] == [1, 2, 3, 1]


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param([{"$set": {"by": {"$divide": [1, "$turn"]}}}], id="by the server"),
        pytest.param([{"$set": {"by": literal(2**64)}}], id="by the driver"),
    ],
)
async def test_one_that_is_refused_fails_alone(collection: Watched, refused: list[Document]) -> None:
    await filled(collection, 3)
    commits = Commits(collection)
    asked = (taken("first"), refused, taken("last"))
    found = await asyncio.gather(
        *(commits.apply({"_id": number}, pipeline) for number, pipeline in enumerate(asked)), return_exceptions=True
    )
    assert [isinstance(one, Exception) for one in found] == [False, True, False]
    assert [one["by"] for one in (found[0], found[2])] == ["first", "last"]


async def test_one_who_asks_no_longer_takes_nothing_from_the_others(collection: Watched) -> None:
    await filled(collection, 3)
    commits = Commits(collection)
    asked = [asyncio.create_task(commits.apply({"_id": n}, taken("t"), by="t")) for n in range(3)]
    await asyncio.sleep(0)
    asked[1].cancel()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [one["by"] for one in (found[0], found[2])] == ["t", "t"]
    assert isinstance(found[1], asyncio.CancelledError)
    assert (await commits.apply({"_id": 1, "turn": 1}, taken("next"), by="next"))["turn"] == 2


async def test_a_document_that_is_there_is_not_created_again(collection: Watched) -> None:
    await filled(collection, 2)
    commits = Commits(collection)
    missing = {"$eq": [{"$type": "$turn"}, "missing"]}
    fresh = {"$mergeObjects": ["$$ROOT", literal({"turn": 7, "by": "me"})]}
    create = [{"$replaceWith": {"$cond": [missing, fresh, "$$ROOT"]}}]
    asked = (commits.apply({"_id": number}, create, upsert=True, by="me") for number in range(4))
    found = await asyncio.gather(*asked)
    assert [one and one["turn"] for one in found] == [None, None, 7, 7]
    assert [one["turn"] for one in await collection.find().sort("_id", 1).to_list(9)] == [0, 0, 7, 7]
