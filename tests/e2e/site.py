"""A running demo as scripts see it: its address, its people, its processes, and a client for its API and streams."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

START_S = 180.0


@dataclass
class Heard:
    """What one connection to a summary's events received."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    text: str = ""
    done: dict[str, Any] | None = None
    last_id: str = ""

    def take(self, event: str, data: str, event_id: str) -> None:
        body = json.loads(data) if data else {}
        self.events.append((event, body))
        self.last_id = event_id or self.last_id
        if event == "reset":
            self.text = ""
        elif event == "text":
            self.text += body["t"]
        elif event == "done":
            self.done = body


class Site:
    """One demo, by the contract of its `demo.json`."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes] | None = None) -> None:
        self.folder = folder
        self.process = process

    @property
    def facts(self) -> dict[str, Any]:
        return json.loads((self.folder / "demo.json").read_text(encoding="utf-8"))

    def client(self, person: dict[str, str]) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {person['token']}"}
        return httpx.AsyncClient(base_url=self.facts["url"], headers=headers, timeout=20, trust_env=False)

    def pids(self, role: str) -> dict[str, int]:
        return {p["name"]: p["pid"] for p in self.facts["processes"] if p["role"] == role}

    def stream(self, **wanted: Any) -> str:
        """The address of the first demo stream that fits; by default the shortest live one."""
        live = [s for s in self.facts["streams"] if s["live_seconds"] > 0]
        return min(live, key=lambda s: s["live_seconds"])["url"]

    async def until_up(self) -> None:
        deadline = time.monotonic() + START_S
        while not (self.folder / "demo.json").exists():
            if self.process and self.process.poll() is not None:
                raise AssertionError(f"the demo ended with {self.process.returncode}")
            assert time.monotonic() < deadline, "the demo did not come up"
            await asyncio.sleep(0.1)


def _demo(log: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "app.cli", "demo", "--end-with-parent"]
    with log.open("ab") as output:
        return subprocess.Popen(command, env=env, stdout=output, stderr=output)


@asynccontextmanager
async def running_site(folder: Path, **variables: str) -> AsyncIterator[Site]:
    """Start `baton demo` on a free port with its data in `folder`, and stop it afterwards."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
    env = {**keep, "BATON_PORT": "0", "BATON_DATA_DIR": str(folder), **variables}
    folder.mkdir(parents=True, exist_ok=True)
    process = _demo(folder / "demo.out", env)
    site = Site(folder, process)
    try:
        await site.until_up()
        yield site
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, 60)


async def listen(site: Site, person: dict[str, str], summary_id: str, heard: Heard, last_id: str = "") -> Heard:
    """One connection to the events, until `done` or until it breaks."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with site.client(person) as client:
        address = f"/api/summaries/{summary_id}/events"
        async with client.stream("GET", address, headers=headers, timeout=httpx.Timeout(20, read=60)) as response:
            response.raise_for_status()
            event, data, event_id = "message", "", ""
            async for line in response.aiter_lines():
                if not line:
                    if data:
                        heard.take(event, data, event_id)
                    event, data, event_id = "message", "", ""
                elif line.startswith("event:"):
                    event = line[6:].strip()
                elif line.startswith("data:"):
                    data += line[5:].strip()
                elif line.startswith("id:"):
                    event_id = line[3:].strip()
    return heard


async def follow(site: Site, person: dict[str, str], summary_id: str) -> Heard:
    """As a browser does: connect again with the last id until `done` has come."""
    heard = Heard()
    while heard.done is None:
        with suppress(httpx.HTTPError):
            await listen(site, person, summary_id, heard, heard.last_id)
        if heard.done is None:
            await asyncio.sleep(0.5)
    return heard


async def subscribe(site: Site, person: dict[str, str], url: str, **body: str) -> dict[str, Any]:
    """Subscribe, trying again as long as the site is being restarted."""
    async with site.client(person) as client:
        while True:
            try:
                answer = await client.post("/api/summaries", json={"url": url, **body})
                if answer.status_code < 500:
                    assert answer.status_code in (200, 201), answer.text
                    return answer.json()
            except httpx.HTTPError:
                pass
            await asyncio.sleep(0.5)
