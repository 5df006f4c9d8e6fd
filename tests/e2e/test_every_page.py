"""What holds for every page in every state: no barrier, no sideways scrolling; and reading needs no script."""

from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, Response, ViewportSize, expect

from tests.e2e.gallery import TEXT, Gallery, arrange
from tests.e2e.stage import PASSWORD, Stage, path_of
from tests.web_kit import STREAM

GRAVE = ("serious", "critical")
FIRST_PAGE_BYTES = 150_000


@pytest.fixture(scope="module")
async def gallery(stage: Stage) -> Gallery:
    return await arrange(stage)


async def barriers(page: Page) -> list[str]:
    """What axe finds that is serious or critical, each with the elements it concerns."""
    found = (await Axe().run(page, options={"resultTypes": ["violations"]})).response["violations"]
    return [
        f"{one['impact']} {one['id']}: {node['target']} {node['failureSummary']}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]


@pytest.mark.parametrize(("language", "theme", "width"), [("en", "light", 1280), ("zh", "dark", 360)])
@pytest.mark.timeout(300)
async def test_no_page_has_a_serious_barrier(
    gallery: Gallery, chromium: Browser, language: str, theme: Any, width: int
):
    found: dict[str, list[str]] = {}
    viewport = ViewportSize(width=width, height=800)
    async with gallery.pages(chromium, language, color_scheme=theme, viewport=viewport) as pages:
        for view in gallery.views:
            found[view.name] = await barriers(await gallery.open(view, pages))
    assert {name: some for name, some in found.items() if some} == {}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.timeout(300)
async def test_no_page_scrolls_sideways_on_a_phone(gallery: Gallery, chromium: Browser, language: str):
    too_wide: dict[str, int] = {}
    async with gallery.pages(chromium, language, viewport={"width": 360, "height": 740}) as pages:
        for view in gallery.views:
            page = await gallery.open(view, pages)
            width = await page.evaluate("document.documentElement.scrollWidth")
            if width > 360:
                too_wide[view.name] = width
    assert too_wide == {}


async def test_without_a_script_a_stream_is_subscribed_to_and_its_summary_read(stage: Stage, chromium: Browser):
    name = await stage.person()
    context = await stage.browsing(chromium, None, java_script_enabled=False)
    page = await context.new_page()
    await page.goto("/")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_label("Address of the stream").fill(f"{STREAM}?run={name}")
    await page.get_by_role("button", name="Summarise", exact=True).click()
    await expect(page.locator("[data-state-text]")).to_have_text("Following the stream")
    assert "does not update by itself without JavaScript" in await page.content()  # a browser that is told shows it

    record = {"id": page.url.rpartition("/")[2]}
    record = await stage.record(name, record)
    await stage.kit.record_session(record)
    await stage.kit.transcribe(record, "A lease ends by itself.")
    await stage.finish(record, TEXT)
    await page.reload()
    await expect(page.locator("#text")).to_contain_text("A fencing token tells the store")
    await page.locator("details.transcript > summary").click()
    await expect(page.get_by_text("A lease ends by itself.", exact=True)).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Markdown").click()
    assert TEXT.strip() in (await (await download.value).path()).read_text(encoding="utf-8")
    await page.goto("/")
    await expect(page.locator(".summary-card")).to_contain_text("Finished")
    await context.close()


async def test_a_finished_summary_leaves_no_complaint_in_the_console(stage: Stage, chromium: Browser):
    name = await stage.person()
    record = await stage.finished(name, TEXT)
    context = await stage.browsing(chromium, name)
    page = await context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.goto(path_of(record), wait_until="networkidle")
    await page.locator("details.transcript > summary").click()
    await page.get_by_label("Find in the transcript").fill("lease")
    await expect(page.locator(".segments mark").first).to_be_visible()
    assert complaints == []
    await context.close()


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
async def test_the_first_pages_weigh_under_150_kilobytes(stage: Stage, chromium: Browser, language: str):
    name = await stage.person()
    record = await stage.finished(name, TEXT)
    for who, path in ((None, "/sign-in"), (name, path_of(record)), (name, "/")):
        context = await stage.browsing(chromium, who, locale=language)
        page = await context.new_page()
        answers: list[Response] = []
        page.on("response", lambda answer, kept=answers: kept.append(answer))
        await page.goto(path)
        sizes = {one.url: len(await one.body()) for one in answers if not one.url.endswith("/api/events")}
        assert len(sizes) > 4
        assert sum(sizes.values()) < FIRST_PAGE_BYTES, sizes
        await context.close()
