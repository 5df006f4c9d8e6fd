"""A real Chromium for the browser tests."""

import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

QUIETLY = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIETLY += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """The system's Chromium if there is one, else the one that Playwright installed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=QUIETLY)
        yield browser
        await browser.close()
