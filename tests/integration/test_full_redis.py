"""A Redis at `maxmemory` that refuses every write: summaries are slower, and all arrive."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import OutOfMemoryError

from activities.plans import CONTENT_GENERATION, SPEECH_RECOGNITION
from app.embedded import embedded_servers
from app.settings import Settings
from app.views import SummaryView
from kernel import Limits
from kernel.lanes import Lanes
from kernel.mutex import Mutex
from kernel.permits import Grant, Permits, Refusal
from kernel.worker import Pace, Worker
from tests.story_kit import Story, open_story

QUICK = Pace(lease_s=5.0, poll_s=0.1, scan_s=0.2, beat_s=0.2, recover_s=0.2)


@pytest.fixture(scope="module")
def valkey_url(server_urls: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Valkey of its own."""
    with embedded_servers(tmp_path_factory.mktemp("full"), Settings(mongo_url=server_urls[0])) as urls:
        yield urls.redis


@pytest.fixture
async def full(valkey_url: str, prefix: str, clock: Any) -> AsyncIterator[Redis]:
    """A client of it; from here on it is full."""
    client = Redis.from_url(valkey_url)
    await Lanes(client, prefix, clock).pop()  # as after an idle moment: the lanes have nothing to write
    await client.config_set("maxmemory", "1mb")
    await client.config_set("maxmemory-policy", "noeviction")
    with pytest.raises(OutOfMemoryError):
        await client.set("anything", "x" * 1000)
    yield client
    await client.config_set("maxmemory", "0")
    await client.flushall()
    await client.aclose()


async def test_summaries_are_written_with_a_redis_that_is_full(db: Any, full: Redis, prefix: str, clock: Any) -> None:
    story = await open_story(db, full, prefix, clock)
    for resource in (CONTENT_GENERATION, SPEECH_RECOGNITION):
        await story.parts.limits.change(resource, Limits(2, 2))
    definitions = story.fleet.definitions
    recover = (story.dispatcher.recover, story.subscriptions.purge)
    mutex = Mutex(full, prefix)
    worker = Worker("w", story.parts, definitions, story.projections, mutex, pace=QUICK, recover=recover)
    views = [await story.subscribe(user) for user in ("li", "wang")]
    working = asyncio.create_task(worker.run())
    ended = [await ended_view(story, user, view.id) for user, view in zip(("li", "wang"), views, strict=True)]
    worker.stop()
    await working
    assert [view.state for view in ended] == ["completed", "completed"]
    assert story.world.written == 2, "nobody was written to twice"


async def ended_view(story: Story, user: str, summary_id: str) -> SummaryView:
    """The summary once it has ended; the time between polls is skipped."""
    while (view := await story.view(user, summary_id)).state not in ("completed", "failed", "canceled"):
        story.parts.clock.advance(timedelta(seconds=1))
        await asyncio.sleep(0.05)
    return view


async def test_permits_are_still_counted_in_a_redis_that_is_full(full: Redis, prefix: str, clock: Any) -> None:
    permits, one = Permits(full, prefix, clock, 30.0), Limits(1, 0)
    assert isinstance(await permits.acquire("speech", "a/step", "t1", one), Grant)
    assert isinstance(await permits.acquire("speech", "b/step", "t2", one), Refusal)
    assert (await permits.figures("speech")).in_use == 1
    assert await permits.renew("speech", "a/step", "t1")
    assert await permits.release("speech", "a/step", "t1")
    assert isinstance(await permits.acquire("speech", "b/step", "t2", one), Grant)
