"""The operators' pages in a real browser: what a reader unfolded or typed survives what happens meanwhile."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, expect
from redis.asyncio import Redis

from kernel import Clock
from tests.e2e.stage import Stage
from tests.kernel_kit import Kit, open_kit


@pytest.fixture
async def kit(stage: Stage) -> AsyncIterator[Kit]:
    """Workers of the site's kernel, moved by hand."""
    settings = stage.kit.parts.settings
    async with Redis.from_url(settings.redis_url) as redis:
        yield await open_kit(stage.database, redis, settings.redis_prefix, Clock())


@pytest.fixture
async def page(stage: Stage, chromium: Browser) -> AsyncIterator[Page]:
    """An operator's browser."""
    context = await stage.browsing(chromium, await stage.person("operator"))
    yield await context.new_page()
    await context.close()


async def test_earlier_attempts_stay_unfolded_and_the_focus_stays_while_the_workflow_goes_on(kit: Kit, page: Page):
    started = await kit.start("retry", "unfolded")
    await kit.run_claims("retry", 2, "unfolded")
    await page.goto(f"/operators/workflows/{started.instance.workflow_id}")
    earlier = page.locator("details.earlier")
    await earlier.locator("summary").focus()
    await page.keyboard.press("Enter")
    await expect(earlier.locator(".attempt")).to_have_count(1)
    await kit.run("retry", "unfolded")
    await expect(earlier.locator(".attempt")).to_have_count(2)
    await expect(earlier.locator(".attempt").last).to_be_visible()
    await expect(earlier.locator("summary")).to_be_focused()
    await expect(page.locator(".facts .pill")).to_have_text("completed")
