"""A worker that comes back with a result of a round that is over changes no business object, and no intent."""

from typing import Any

import pytest

from kernel import Clock
from tests.crash import late_intents, late_rounds
from tests.kernel_kit import Kit
from tests.story_kit import Story, open_story


@pytest.fixture
async def story(db: Any, redis: Any, prefix: str, clock: Clock) -> Story:
    """One finished summary with its session and transcript."""
    made = await open_story(db, redis, prefix, clock)
    await made.subscribe()
    await made.settle()
    return made


@pytest.mark.parametrize("write", late_rounds.late_writes())
async def test_a_write_of_an_older_round_changes_nothing(write: str, story: Story) -> None:
    assert await late_rounds.changes_nothing(story, write)


@pytest.mark.parametrize("write", late_intents.late_writes())
async def test_a_late_dispatcher_changes_no_intent(write: str, kit: Kit) -> None:
    assert await late_intents.changes_nothing(kit.desk, write)
