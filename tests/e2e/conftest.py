"""A real Chromium for the browser tests, and one site for those that choose the moment of everything."""

import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

from tests.e2e.stage import Stage, open_stage

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


@pytest.fixture(scope="session")
async def stage(server_urls: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(server_urls, tmp_path_factory.mktemp("stage")) as stage:
        yield stage
