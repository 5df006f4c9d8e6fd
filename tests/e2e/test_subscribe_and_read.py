"""The main job in a real browser, on the real demo: one click on a live stream, its summary read as it is written."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.site import Site, running_site

PATIENCE_MS = 230_000
"""The stream lasts a minute; then it is packaged, transcribed and written on whatever machine this is."""


@pytest.fixture(scope="module")
async def site(tmp_path_factory):
    async with running_site(tmp_path_factory.mktemp("baton")) as site:
        yield site


async def signed_in(chromium: Browser, site: Site) -> tuple[Page, list[str]]:
    """A page that the demo's user has signed in on, and what its console will complain about."""
    page = await (await chromium.new_context(base_url=site.facts["url"])).new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.goto("/")
    await page.get_by_label("Name").fill(site.facts["user"]["name"])
    await page.get_by_label("Password").fill(site.facts["user"]["password"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="My summaries")).to_be_visible()
    return page, complaints


async def record_of(site: Site, page: Page) -> dict:
    async with site.client(site.facts["user"]) as client:
        return (await client.get(f"/api{page.url.removeprefix(site.facts['url'])}")).json()


@pytest.mark.timeout(300)
async def test_a_live_stream_is_subscribed_to_by_one_click_and_its_summary_read(site: Site, chromium: Browser):
    page, complaints = await signed_in(chromium, site)
    title = next(stream["title"] for stream in site.facts["streams"] if stream["url"] == site.stream())
    await page.get_by_role("button", name=f"Summarise {title}").click()
    await expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
    await expect(page.locator("#reason")).to_contain_text("stream")
    arriving = page.locator("#text[data-writing]")
    await expect(arriving).to_be_visible(timeout=PATIENCE_MS)
    await expect(page.locator("[data-state-text]")).to_have_text("Finished", timeout=PATIENCE_MS)
    await expect(arriving).to_have_count(0)

    assert (await record_of(site, page))["state"] == "completed"
    shown = await page.locator("#text").inner_text()
    assert len(shown) > 100
    await expect(page.locator("#stepper li[data-status=completed]")).to_have_count(4)
    await expect(page.get_by_role("link", name="Markdown")).to_be_visible()

    await page.reload()
    assert await page.locator("#text").inner_text() == shown
    await page.locator("details.transcript > summary").click()
    lines = await page.locator(".segments li").count()
    assert lines > 3
    await page.get_by_label("Find in the transcript").fill("LEASE")
    await expect(page.locator(".segments mark").first).to_have_text(re.compile("lease", re.IGNORECASE))
    assert 0 < await page.locator(".segments li:visible").count() < lines
    await page.get_by_label("Find in the transcript").fill("")
    assert await page.locator(".segments li:visible").count() == lines
    await page.locator(".segments .time").nth(2).click()
    at = float(await page.locator(".segments .time").nth(2).get_attribute("data-start") or -1)
    await expect(page.locator(".segments li[aria-current]")).to_have_count(1)
    assert await page.evaluate("document.querySelector('audio').currentTime") >= at - 0.5
    assert complaints == []


async def test_a_wrong_address_is_told_before_it_is_sent(site: Site, chromium: Browser):
    page, complaints = await signed_in(chromium, site)
    await expect(page.get_by_label("Or a file of sound or video")).to_be_visible()  # the script is at work
    address = page.get_by_label("Address of the stream")
    await address.fill("tomorrow at eight")
    await page.get_by_role("button", name="Summarise", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("This is not a web address")
    await expect(address).to_be_focused()
    assert complaints == []


@pytest.mark.timeout(300)
async def test_a_file_is_sent_and_its_summary_read(site: Site, chromium: Browser):
    page, complaints = await signed_in(chromium, site)
    field = page.get_by_label("Or a file of sound or video")
    await expect(field).to_be_visible()
    await field.set_input_files(Path("fixtures/audio/harbor.aac"))
    await page.get_by_role("button", name="Summarise", exact=True).click()
    await expect(page.get_by_role("heading", name="harbor", level=1)).to_be_visible()
    await expect(page.locator("[data-state-text]")).to_have_text("Finished", timeout=PATIENCE_MS)
    record = await record_of(site, page)
    assert (record["state"], record["error"]) == ("completed", None)
    assert len(record["text"]) > 100
    assert complaints == []
