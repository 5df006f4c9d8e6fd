"""A real Chromium: the system's if there is one, else the one that Playwright installed."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

QUIETLY = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIETLY += ["--disable-component-update", "--disable-sync"]


@asynccontextmanager
async def open_chromium() -> AsyncIterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=QUIETLY)
        yield browser
        await browser.close()
