"""Tabs, reloads, cut connections and a killed site: however a summary is read, its text is the record's."""

import os
from collections.abc import Awaitable, Callable
from random import Random, randrange
from typing import Literal

import pytest
from playwright.async_api import Browser, Error, Page, expect

from tests.e2e.stage import Stage, arrived, keep_what_arrives, path_of

ROUNDS = int(os.environ.get("READING_ROUNDS", "20"))
SEED = int(os.environ.get("READING_SEED", "0")) or randrange(1, 10**6)
WORDS = ("queue", "lease", "**by itself**", "租约会自己结束", "🙂", "`fence`", "naïve", "*late*", "<b>", "&amp;", "—")

AS_A_BROWSER_WRITES_IT = """html => {
    const place = document.createElement("div");
    place.innerHTML = html;
    return place.innerHTML.trim();
}"""


def piece(random: Random, number: int) -> str:
    """Some Markdown that ends with words by which it is found on a page."""
    begin = random.choice(["## Part", "- point", "1. first", "> said", "Plain"])
    return f"{begin} {' '.join(random.choices(WORDS, k=random.randint(1, 40)))} mark{number}.\n\n"


async def ended_with(page: Page, record: dict) -> None:
    """The page has come to the end, and shows the record."""
    await expect(page.locator("[data-state-text]")).to_have_text("Finished")
    await expect(page.locator("#text[data-writing]")).to_have_count(0)
    shown = await page.locator("#text").evaluate("element => element.innerHTML.trim()")
    assert shown == await page.evaluate(AS_A_BROWSER_WRITES_IT, record["html"])


async def reloaded(page: Page, random: Random) -> None:
    """At whatever moment: a reload need not be over before the next one begins."""
    await reload(page, random.choice(["commit", "domcontentloaded", "load"]))


async def reload(page: Page, until: Literal["commit", "domcontentloaded", "load"]) -> None:
    """A browser refuses a remote reload in the instant it swaps one page for the next; a person's key waits for it."""
    for _ in range(20):
        try:
            await page.reload(wait_until=until)
            return
        except Error as error:
            if "Not attached to an active page" not in error.message:
                raise
        await page.wait_for_load_state(until if until != "commit" else "domcontentloaded")
    raise AssertionError("the page was never swapped for the next")


async def whole(page: Page) -> None:
    """A page that was cut while it came is half a page; whoever looks at it asks for it again."""
    await page.wait_for_load_state()
    if not await page.locator("#text").count():
        await reload(page, "load")


@pytest.mark.timeout(60 + 6 * ROUNDS)
async def test_the_text_is_the_records_after_reloads_cuts_and_a_killed_site(stage: Stage, chromium: Browser):
    print(f"READING_SEED={SEED}")
    random, name = Random(SEED), await stage.person()
    record, sink = await stage.writing(name)
    context = await stage.browsing(chromium, name)
    steady, restless = await context.new_page(), await context.new_page()
    for page in (steady, restless):
        await page.goto(path_of(record))
    await keep_what_arrives(steady)

    async def cut() -> None:
        stage.proxy.cut()

    async def kill() -> None:
        await stage.process.kill()
        await stage.process.start()

    harms: list[Callable[[], Awaitable[None]]] = [
        random.choice([cut, lambda: reloaded(restless, random)]) for _ in range(ROUNDS - 1)
    ]
    harms.insert(random.randrange(ROUNDS // 4, ROUNDS), kill)
    text = ""
    for number, harm in enumerate(harms):
        written = piece(random, number)
        text += written
        await sink.write(written)
        await harm()
        if random.random() < 0.4:
            page = random.choice([steady, restless])
            await whole(page)
            await expect(page.locator("#text")).to_contain_text(f"mark{number}.")
    await reload(restless, "load")
    await keep_what_arrives(restless)
    stage.proxy.cut()
    await stage.finish(record, text)

    record = await stage.record(name, record)
    assert record["text"] == text
    for page in (steady, restless):
        assert await arrived(page) == text, f"seed {SEED}"
        await ended_with(page, record)
    await context.close()


async def test_two_tabs_behind_a_proxy_that_cuts_end_with_the_same_text(stage: Stage, chromium: Browser):
    random, name = Random(31), await stage.person()
    record, sink = await stage.writing(name)
    context = await stage.browsing(chromium, name)
    tabs = [await context.new_page(), await context.new_page()]
    for tab in tabs:
        await tab.goto(path_of(record))
        await keep_what_arrives(tab)
    text = ""
    for number in range(4):
        written = piece(random, number)
        text += written
        await sink.write(written)
        for tab in tabs:
            await expect(tab.locator("#text")).to_contain_text(f"mark{number}.")
        stage.proxy.cut()
    await stage.finish(record, text)
    for tab in tabs:
        assert await arrived(tab) == text
        await ended_with(tab, await stage.record(name, record))
    await context.close()


async def test_a_laptop_that_slept_for_an_hour_reads_on_when_it_wakes(stage: Stage, chromium: Browser):
    name = await stage.person()
    record, sink = await stage.writing(name)
    context = await stage.browsing(chromium, name)
    page = await context.new_page()
    await page.clock.install()
    await page.goto(path_of(record))
    await keep_what_arrives(page)
    await sink.write("Before the sleep.")
    await expect(page.locator("#text")).to_contain_text("Before the sleep.")
    stage.proxy.freeze()  # the connection is dead, and nobody tells the browser
    await sink.write(" After it.")
    await stage.finish(record, "Before the sleep. After it.")
    await page.clock.fast_forward("01:00:00")
    assert await arrived(page) == "Before the sleep. After it."
    await ended_with(page, await stage.record(name, record))
    await context.close()


async def test_a_hidden_tab_needs_no_connection_and_reads_on_behind_what_it_has(stage: Stage, chromium: Browser):
    name = await stage.person()
    record, sink = await stage.writing(name)
    context = await stage.browsing(chromium, name)
    page = await context.new_page()
    positions: list[str | None] = []
    page.on(
        "request",
        lambda one: positions.append(one.headers.get("last-event-id")) if one.url.endswith("/events") else None,
    )
    async with page.expect_request("**/events") as first:
        await page.goto(path_of(record))
    await keep_what_arrives(page)
    await sink.write("While it is seen.")
    await expect(page.locator("#text")).to_contain_text("While it is seen.")
    async with page.expect_event("requestfailed", lambda one: one.url.endswith("/events")):
        await show(page, False)
    await sink.write(" While nobody looks.")
    await stage.finish(record, "While it is seen. While nobody looks.")
    await show(page, True)
    assert await arrived(page) == "While it is seen. While nobody looks."
    await ended_with(page, await stage.record(name, record))
    assert (await first.value).url.endswith("/events")
    assert positions[0] is None
    assert positions[1:]
    assert all(positions[1:])
    await context.close()


async def show(page: Page, shown: bool) -> None:
    """As when another tab is chosen, which a headless browser has no way to do."""
    await page.evaluate(
        """shown => {
            Object.defineProperty(document, "hidden", { configurable: true, value: !shown });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        shown,
    )


async def test_a_finished_summary_is_there_at_once_without_a_connection(stage: Stage, chromium: Browser):
    name = await stage.person()
    record = await stage.finished(name, "## Leases\n\nThey **end by themselves**.\n")
    context = await stage.browsing(chromium, name)
    page = await context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(path_of(record), wait_until="domcontentloaded")
    await ended_with(page, record)
    await page.wait_for_load_state("networkidle")
    assert not [url for url in asked if "/api/" in url]
    await context.close()


async def test_seven_tabs_of_live_pages_all_work(stage: Stage, chromium: Browser):
    """A browser opens six HTTP/1.1 connections to a host; whoever took them all would leave none to load a page."""
    name = await stage.person()
    live = [await stage.writing(name) for _ in range(6)]
    context = await stage.browsing(chromium, name)
    home, *tabs = [await context.new_page() for _ in range(7)]
    await home.goto("/")
    for tab, (record, _) in zip(tabs, live, strict=True):
        await tab.goto(path_of(record))
        await keep_what_arrives(tab)
    for _, sink in live:
        await sink.write("All of them hear this.")
    for tab in tabs:
        await expect(tab.locator("#text")).to_contain_text("All of them hear this.")
    eighth = await context.new_page()
    await eighth.goto("/")
    await expect(eighth.get_by_role("heading", name="My summaries")).to_be_visible()
    for record, sink in live:
        await sink.write(" And this.")
        await stage.finish(record, "All of them hear this. And this.")
    for tab, (record, _) in zip(tabs, live, strict=True):
        assert await arrived(tab) == "All of them hear this. And this."
        await ended_with(tab, await stage.record(name, record))
    for page in (home, eighth):
        await expect(page.locator(".summary-card[data-state=completed]")).to_have_count(6)
    await context.close()
