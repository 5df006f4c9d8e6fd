"""The real web process before a browser, and all that is behind it in the test's hands.

Nothing runs workflows: a test moves the records and writes the text itself, as the activities would, so that each
moment can be chosen. Between browser and process stands a proxy that cuts connections, and the process can be killed.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import msgspec
from playwright.async_api import Browser, BrowserContext, Page

from app.accounts import Accounts, Role
from app.ports import free_port
from app.settings import Settings
from app.wiring import web_parts
from kernel import Clock
from kernel.driver import open_database, open_mongo
from kernel.sink import Sink
from tests.proxy import HarmfulProxy, harmful_proxy
from tests.web_kit import CHEAP, STREAM, WebKit, settings_on, stores_on

PASSWORD = "a stream of words"
SPOKEN = ("Good evening. Tonight we ask why queues lie.", "A lease ends by itself.", "租约会自己结束。")


class WebProcess:
    """`baton web` on one port, killed and started at will."""

    def __init__(self, settings: Settings, log: Path) -> None:
        self._settings = settings
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Returns when it answers."""
        process = self._process = self._spawn()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self._settings.port}", trust_env=False) as client:
            while process.poll() is None:
                try:
                    await client.get("/sign-in")
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
                else:
                    return
        raise AssertionError(f"the web process ended: {self._log.read_text()}")

    async def kill(self) -> None:
        assert self._process
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "app.cli", "web"]
        with self._log.open("ab") as output:
            return subprocess.Popen(command, env=self._environment(), stdout=output, stderr=output)

    def _environment(self) -> dict[str, str]:
        keep = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
        changed = {
            name: value
            for name, value in msgspec.to_builtins(self._settings).items()
            if value != msgspec.to_builtins(Settings())[name]
        }
        return keep | {f"BATON_{name.upper()}": _variable(value) for name, value in changed.items()}


def _variable(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@dataclass
class Stage:
    """One site for all tests; each has people of its own."""

    kit: WebKit
    database: Any
    accounts: Accounts
    proxy: HarmfulProxy
    process: WebProcess

    async def person(self, role: Role = "subscriber") -> str:
        """A new person's name."""
        name = f"{role}-{token_hex(4)}"
        self.kit.tokens[name] = await self.accounts.ensure(name, PASSWORD, role)
        return name

    async def browsing(self, chromium: Browser, name: str | None, **options: Any) -> BrowserContext:
        """A browser of its own in which that person is signed in; None: nobody is."""
        context = await chromium.new_context(base_url=self.kit.url, **options)
        if name:
            form = {"name": name, "password": PASSWORD}
            answer = await context.request.post("/sign-in", form=form, headers={"sec-fetch-site": "same-origin"})
            assert answer.ok
        return context

    async def summary(self, name: str, **fields: str) -> dict[str, Any]:
        """A new summary that waits for its stream."""
        return await self.kit.subscribe(name, f"{STREAM}?run={token_hex(6)}", **fields)

    async def writing(self, name: str) -> tuple[dict[str, Any], Sink]:
        """A summary that is being written, and what writes it."""
        record = await self.summary(name)
        await self.kit.record_session(record)
        await self.kit.transcribe(record, *SPOKEN)
        await self.kit.stores.summaries.mark(record["id"], 1, "writing")
        return record, await self.kit.parts.streams.open(self.kit.key(record))

    async def finish(self, record: dict[str, Any], text: str) -> None:
        await self.kit.complete(record, text)
        await self.kit.parts.streams.end(self.kit.key(record), b"{}")

    async def finished(self, name: str, text: str) -> dict[str, Any]:
        """The record of a summary whose text is that."""
        record, _ = await self.writing(name)
        await self.finish(record, text)
        return await self.record(name, record)

    async def record(self, name: str, record: dict[str, Any]) -> dict[str, Any]:
        """The record as it is now."""
        async with self.kit.client(name) as client:
            return (await client.get(f"/api/summaries/{record['id']}")).json()


@asynccontextmanager
async def open_stage(urls: tuple[str, str], folder: Path) -> AsyncIterator[Stage]:
    """The site, listening, on a database of its own that is dropped afterwards."""
    database, port = f"baton_e2e_{os.getpid()}", free_port()
    client = open_mongo(urls[0])
    settings = settings_on(urls, database, database, {"port": port, "data_dir": str(folder)})
    process = WebProcess(settings, folder / "web.log")
    try:
        await process.start()
        async with web_parts(settings) as parts, harmful_proxy(port) as proxy:
            opened = open_database(client, database)
            kit = WebKit(f"http://127.0.0.1:{proxy.port}", parts, stores_on(opened), {})
            yield Stage(kit, opened, Accounts(opened, Clock(), CHEAP), proxy, process)
    finally:
        await process.kill()
        await client.drop_database(database)
        client.close()


def path_of(record: dict[str, Any]) -> str:
    return f"/summaries/{record['id']}"


async def keep_what_arrives(page: Page) -> None:
    """From now on the page keeps the text that it has received by the time it is told of the end."""
    await page.evaluate(
        """async () => {
            const root = document.querySelector("script[src$='/page.js']").src.replace("page.js", "");
            const { GrowingText } = await import(`${root}growing-text.js`);
            const finish = GrowingText.prototype.finish;
            window.arrived = new Promise((resolve) => {
                GrowingText.prototype.finish = function (html) {
                    resolve(this.text);
                    finish.call(this, html);
                };
            });
        }"""
    )


async def arrived(page: Page) -> str:
    """The text that the page had received when the end came, once it has come."""
    return await page.evaluate("window.arrived")
