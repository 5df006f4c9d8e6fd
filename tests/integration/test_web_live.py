"""Event streams over the real client streams: whoever reads, from wherever, ends with the record's text."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from kernel.stream import ClientStreams
from tests.sse_client import Browser
from tests.web_kit import STREAM, WebKit, open_web_kit

TEXT = "## Leases\n\nA lease **ends by itself** — 租约会自己结束 🙂.\n"


@pytest.fixture
async def web(server_urls, db, redis, prefix):
    async with open_web_kit(server_urls, db, prefix) as kit:
        yield kit


def browser(web: WebKit, record: dict[str, Any], name: str = "li") -> Browser:
    url = f"{web.url}/api/summaries/{record['id']}/events"
    return Browser(url, {"authorization": f"Bearer {web.tokens[name]}"})


async def writing(web: WebKit) -> dict[str, Any]:
    """A summary that is being written."""
    record = await web.subscribe()
    await web.stores.summaries.mark(record["id"], 1, "writing")
    return record


async def finish(web: WebKit, record: dict[str, Any], text: str = TEXT) -> None:
    await web.complete(record, text)
    await web.parts.streams.end(web.key(record), b"{}")


async def test_a_reader_sees_states_then_the_text_as_it_comes_then_the_record(web):
    record = await web.subscribe()
    tab = browser(web, record)
    async with tab.connected() as reading:
        assert (await tab.until("state"))["state"] == "waiting_for_stream"
        assert tab.raw[:2] == ["retry: 2000", ""]
        await web.stores.summaries.mark(record["id"], 1, "writing")
        sink = await web.parts.streams.open(web.key(record))
        await web.parts.streams.notify(web.key(record))
        await sink.write(TEXT[:20])
        await tab.until_text(TEXT[:20])
        await sink.write(TEXT[20:])
        await tab.until_text(TEXT)
        await finish(web, record)
        await reading
    assert tab.done
    assert tab.done["text"] == tab.text == TEXT
    assert "<strong>ends by itself</strong>" in tab.done["html"]
    assert tab.names[-1] == "done"
    states = [data for name, data in tab.events if name == "state"]
    assert {data["state"] for data in states} == {"waiting_for_stream", "writing", "completed"}
    assert not any("text" in data or "html" in data for data in states)
    assert "reset" not in tab.names


async def test_only_text_events_carry_ids(web):
    record = await writing(web)
    tab = browser(web, record)
    async with tab.connected() as reading:
        await (await web.parts.streams.open(web.key(record))).write("One.")
        await tab.until("text")
        await finish(web, record, "One.")
        await reading
    blocks = "\n".join(tab.raw).split("\n\n")
    with_id = [block for block in blocks if "\nid: " in block]
    assert with_id
    assert all(block.startswith("event: text\n") for block in with_id)
    assert all(block.split("\nid: ")[1].split("\n")[0].replace("-", "").isdigit() for block in with_id)


async def test_readers_that_come_in_the_middle_and_after_the_end_get_the_whole_text(web):
    record = await writing(web)
    sink = await web.parts.streams.open(web.key(record))
    await sink.write(TEXT[:25])
    middle = browser(web, record)
    async with middle.connected() as reading:
        await middle.until_text(TEXT[:25])
        await sink.write(TEXT[25:])
        await finish(web, record)
        await reading
    late = browser(web, record)
    await late.read()
    for tab in (middle, late):
        assert tab.done
        assert tab.done["text"] == tab.text == TEXT
    assert late.names == ["state", "text", "done"]


async def test_a_cut_connection_continues_behind_the_last_event(web):
    record = await writing(web)
    sink = await web.parts.streams.open(web.key(record))
    tab = browser(web, record)
    async with tab.connected():
        await sink.write("One. ")
        await tab.until_text("One. ")
    await sink.write("Two. ")
    async with tab.connected():
        await tab.until_text("One. Two. ")
        assert [data["t"] for name, data in tab.events if name == "text"] == ["One. ", "Two. "]
    await finish(web, record, "One. Two. ")
    await tab.read()
    assert tab.done
    assert tab.text == tab.done["text"] == "One. Two. "


async def test_a_step_that_begins_again_begins_the_text_again(web):
    record = await writing(web)
    tab = browser(web, record)
    async with tab.connected() as reading:
        first = await web.parts.streams.open(web.key(record))
        await first.write("The first worker wrote ")
        await tab.until_text("The first worker wrote ")
        second = await web.parts.streams.open(web.key(record))
        await tab.until("reset")
        await second.write(TEXT)
        await tab.until_text(TEXT)
        await finish(web, record)
        await reading
    assert tab.done
    assert tab.text == tab.done["text"] == TEXT


async def test_text_that_is_not_the_records_is_replaced_before_done(web):
    record = await writing(web)
    tab = browser(web, record)
    async with tab.connected() as reading:
        await (await web.parts.streams.open(web.key(record))).write("What a second writer wrote")
        await tab.until("text")
        await finish(web, record, "What counts")
        await reading
    assert tab.done
    assert tab.text == tab.done["text"] == "What counts"
    assert tab.names[-3:] == ["reset", "text", "done"]


async def test_everything_of_redis_lost_in_the_middle_costs_only_the_animation(web, redis, prefix):
    record = await writing(web)
    tab = browser(web, record)
    async with tab.connected() as reading:
        sink = await web.parts.streams.open(web.key(record))
        await sink.write(TEXT[:30])
        await tab.until("text")
        async for key in redis.scan_iter(match=f"*{prefix}*"):
            await redis.delete(key)
        await finish(web, record)
        await reading
    assert tab.done
    assert tab.text == tab.done["text"] == TEXT


async def test_without_redis_states_and_the_text_still_arrive(web, prefix, clock):
    record = await writing(web)
    nowhere = Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=0.2)
    object.__setattr__(web.parts, "streams", ClientStreams(nowhere, prefix, clock))
    tab = browser(web, record)
    async with tab.connected() as reading:
        await tab.until("state")
        await web.complete(record, TEXT)
        await reading
    assert tab.done
    assert tab.text == tab.done["text"] == TEXT
    await nowhere.aclose()


async def test_a_failed_and_a_removed_summary_end_the_connection_too(web):
    failed, removed = await writing(web), await web.subscribe(url=f"{STREAM}?run=2")
    first, second = browser(web, failed), browser(web, removed)
    async with first.connected() as reading_first, second.connected() as reading_second:
        await (await web.parts.streams.open(web.key(failed))).write("Half a sen")
        await first.until("text")
        await second.until("state")
        await web.stores.summaries.mark_failed(failed["id"], 1, "The writer refused.")
        await web.parts.streams.notify(web.key(failed))
        async with web.client() as li:
            assert (await li.delete(f"/api/summaries/{removed['id']}")).status_code == 200
        await asyncio.gather(reading_first, reading_second)
    assert first.done
    assert second.done
    assert (first.done["state"], first.done["error"], first.text) == ("failed", "The writer refused.", "")
    assert second.done["state"] == "canceled"


async def test_a_new_round_on_an_open_connection_starts_the_text_over(web):
    record = await writing(web)
    tab = browser(web, record)
    async with tab.connected() as reading:
        await (await web.parts.streams.open(web.key(record))).write("Round one")
        await tab.until("text")
        # failed and tried again between two looks of this connection
        await web.stores.summaries.mark_failed(record["id"], 1, "The writer refused.")
        again = await web.stores.summaries.retry(record["id"], 1)
        await web.stores.summaries.mark(record["id"], 2, "writing")
        await web.parts.streams.notify(web.key(record))
        second = record | {"round": again.round}
        await (await web.parts.streams.open(web.key(second))).write(TEXT)
        await tab.until_text(TEXT)
        await finish(web, second)
        await reading
    assert tab.done
    assert (tab.done["round"], tab.done["text"], tab.text) == (2, TEXT, TEXT)


async def test_every_open_connection_ends_when_the_server_stops(web):
    record = await writing(web)
    tab, other = browser(web, record), Browser(f"{web.url}/api/events", browser(web, record).headers)
    async with tab.connected() as reading, other.connected() as listing:
        await tab.until("state")
        await other.until("summary")
        web.parts.stopping.set()
        await asyncio.gather(reading, listing)
    assert tab.done is None


class Watched:
    """The client streams, noting when a reader's iteration is closed."""

    def __init__(self, streams: ClientStreams) -> None:
        self._streams = streams
        self.closed = asyncio.Event()

    async def follow(self, *arguments):
        try:
            async for item in self._streams.follow(*arguments):
                yield item
        finally:
            self.closed.set()


async def test_nothing_goes_on_for_a_reader_who_has_left(web):
    record = await writing(web)
    watched = Watched(web.parts.streams)
    object.__setattr__(web.parts, "streams", watched)
    tab = browser(web, record)
    async with tab.connected():
        await (await web.parts.streams._streams.open(web.key(record))).write("One.")
        await tab.until("text")
        assert not watched.closed.is_set()
    await watched.closed.wait()


async def test_all_of_a_persons_summaries_come_on_one_connection(web):
    record = await web.subscribe()
    tab = Browser(f"{web.url}/api/events", browser(web, record).headers)
    async with tab.connected():
        assert (await tab.until("summary"))["id"] == record["id"]
        second = await web.subscribe(style="minutes")
        assert (await tab.until("summary", 2))["id"] == second["id"]
        await web.stores.summaries.mark(record["id"], 1, "writing")
        changed = await tab.until("summary", 3)
        assert (changed["id"], changed["state"]) == (record["id"], "writing")
        assert "text" not in changed
        async with web.client() as li:
            await li.delete(f"/api/summaries/{record['id']}")
        assert await tab.until("removed") == {"id": record["id"]}
    await web.subscribe("mei", url=f"{STREAM}?run=mei")
    assert all(data["id"] in (record["id"], second["id"]) for _, data in tab.events)
