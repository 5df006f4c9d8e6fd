"""Die before and after every durable write of the business records; the story still ends, once, for everybody."""

from typing import Any

import pytest

from activities.ports import SourceFault, SourceRefused
from kernel import Clock, faults
from kernel.testing import LEASE_S, Crash, crash_at
from tests.story_kit import Story, open_story
from tests.unit.story import Source, window

STORES = ("SessionRecords.", "TranscriptRecords.", "SummaryRecords.", "QuotaRecords.", "RequestKeys.", "Removals.")
ELSEWHERE = (
    "SessionRecords.store_hint",
    "SessionRecords.remove_segments",
    "SessionRecords.note_segments_removed",
    "Removals.cancel",
)
"""Writes at the word of an operator or of a stream's own system, and the sweep's; they have tests of their own."""
POINTS = [point for point in faults.points() if point.startswith(STORES) and not point.startswith(ELSEWHERE)]
OF_THE_SECOND_EVENING = "SessionRecords.begin_next"
PEOPLE = ("li", "wang")


@pytest.fixture
async def story(db: Any, redis: Any, prefix: str, clock: Clock) -> Story:
    """The story in a world where everything goes wrong once."""
    made = await open_story(db, redis, prefix, clock)
    made.world.source = Source(SourceFault("503"), window(0, 2), window(0, 5, ended=True))
    made.world.packager_errors = [SourceRefused("no decoder")]
    made.world.speech_errors = ["out of memory"]
    made.world.reads = 30
    return made


async def tell(story: Story, evenings: int) -> None:
    """Two people read their summaries, a third one changes his mind; on a second evening the stream starts again.

    Any part may have happened before.
    """
    for person in PEOPLE:
        await story.subscribe(person, idempotency_key="k")
    await story.settle()
    while failed := [
        (person, view) for person in PEOPLE for view in await listed(story, person) if view.state == "failed"
    ]:
        for person, view in failed:
            await story.subscriptions.retry(person, view.id)
        await story.settle()
    unwanted = await story.subscribe("zhao")
    await story.turn()
    await story.subscriptions.remove("zhao", unwanted.id)
    await story.subscriptions.undo_remove("zhao", unwanted.id)
    await story.subscriptions.remove("zhao", unwanted.id)
    story.wait(seconds=11)
    await story.settle()
    if evenings == 2:
        await tell_of_the_next_evening(story)


async def tell_of_the_next_evening(story: Story) -> None:
    if await story.db["sessions"].count_documents({}) == 1:
        story.world.source = Source(window(0, 2, path="b"), window(0, 3, path="b", ended=True))
    story.wait(hours=2)
    for person in PEOPLE:
        await story.subscribe(person, idempotency_key="the next evening")
    await story.settle()


async def listed(story: Story, person: str) -> list[Any]:
    return await story.subscriptions.listing(person, 10, None)


async def check(story: Story, evenings: int) -> None:
    """Everybody has one finished summary of each evening, object and workflow agree, and nothing was done twice."""
    for person in PEOPLE:
        views = await listed(story, person)
        assert [(view.state, view.text.count("- ")) for view in views] == [("completed", 2)] * evenings
        assert len({view.session_id for view in views}) == evenings
        assert [one["returned"] for one in await holds(story, person)].count(False) == evenings
    assert await listed(story, "zhao") == []
    assert {one["status"] for one in await story.all_instances()} <= {"completed", "canceled"}
    for stored in await story.db["summaries"].find({}).to_list(10):
        status = (await story.instance_of(stored["_id"])).status
        assert str(status) == stored["state"]
        assert "unsettled" not in stored
        assert stored["workflow_dispatch"]["status"] in ("dispatched", "canceled")
    assert await story.db["segments"].count_documents({}) == (6 if evenings == 1 else 6 + 4)
    transcripts = await story.db["transcripts"].find({}).to_list(10)
    assert [one["state"] for one in transcripts] == ["completed"] * evenings
    rounds = sum(one["round"] for one in transcripts)
    assert len(story.world.tasks) <= rounds, "no second task for a window of a round"


async def holds(story: Story, person: str) -> list[dict[str, Any]]:
    return (await story.db["quota"].find_one({"_id": person}))["holds"]


async def test_undisturbed_the_story_passes_every_point(story: Story) -> None:
    with crash_at("nowhere") as death:
        await tell(story, 2)
    await check(story, 2)
    assert set(POINTS) - set(death.passed) == set()


@pytest.mark.parametrize("point", POINTS)
async def test_the_story_goes_on_after_a_death(point: str, story: Story) -> None:
    evenings = 2 if point.startswith(OF_THE_SECOND_EVENING) else 1
    with crash_at(point) as death, pytest.raises(Crash):
        await tell(story, evenings)
    assert death.happened
    story.wait(seconds=LEASE_S + 1)
    await tell(story, evenings)
    await check(story, evenings)
