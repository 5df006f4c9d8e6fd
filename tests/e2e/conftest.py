"""A real Chromium for the browser tests, and one site for those that choose the moment of everything."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from tests.e2e.chromium import open_chromium
from tests.e2e.stage import Stage, open_stage


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
async def stage(server_urls: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(server_urls, tmp_path_factory.mktemp("stage")) as stage:
        yield stage
