"""An hour of talk, live at four times the clock: how soon after its end it is summarised, and the memory it took.

`make bench-hour`, or `MINUTES=6 make bench-hour` for a look. Everything is a real demo with an origin of its own beside
it; the clock starts when the playlist says ENDLIST.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil
from pymongo import AsyncMongoClient

from tests.e2e.site import Site, running_site, subscribe

MINUTES = float(os.environ.get("MINUTES", "60"))
SPEED = 4.0
PARTS = ("harbor", "kitchen", "library", "lighthouse", "night-talk", "field-notes")
LOOK_S = 0.5


class Peaks:
    """The largest resident size of each role's processes, in MB."""

    def __init__(self) -> None:
        self.found: dict[str, float] = {}

    def look(self, site: Site) -> None:
        for process in site.facts["processes"]:
            try:
                size = psutil.Process(process["pid"]).memory_info().rss / 1e6
            except psutil.NoSuchProcess:
                continue
            self.found[process["role"]] = max(self.found.get(process["role"], 0.0), size)


def catalogue(folder: Path) -> None:
    """The recordings of the demo as one long live talk."""
    programme = {"name": "hour", "title": "An Hour", "language": "en", "parts": PARTS, "repeat_until_s": MINUTES * 60}
    (folder / "streams.json").write_bytes(msgspec.json.encode([programme]))
    for name in ("audio", "scripts"):
        (folder / name).symlink_to(Path("fixtures", name).resolve())


@contextmanager
def origin(folder: Path) -> Iterator[str]:
    """Its address."""
    command = [sys.executable, "-m", "fixtures.origin", "--audio", str(folder), "--speed", str(SPEED)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().strip().rpartition(" ")[2]
    finally:
        process.terminate()
        process.wait(10)


async def ended_at(url: str) -> float:
    """When the list says that it is over."""
    async with httpx.AsyncClient(trust_env=False) as client:
        while True:
            if "#EXT-X-ENDLIST" in (await client.get(url)).text:
                return time.monotonic()
            await asyncio.sleep(LOOK_S)


async def backlog_s(database: Any) -> float:
    """Seconds that are recorded and not yet recognised."""
    session = await database.sessions.find_one({}) or {}
    transcript = await database.transcripts.find_one({}) or {}
    windows = transcript.get("windows", {}).values()
    return session.get("captured_s", 0.0) - sum(window["expected_s"] for window in windows)


async def measure(site: Site, url: str) -> None:
    person = site.facts["user"]
    mongo = next(process for process in site.facts["processes"] if process["role"] == "mongo")
    database = AsyncMongoClient("127.0.0.1", mongo["port"], directConnection=True)["baton"]
    summary, seen = await subscribe(site, person, url, style="chapters"), dict[str, float]()
    ending = asyncio.create_task(ended_at(url))
    peaks, largest = Peaks(), 0.0
    async with site.client(person) as client:
        while summary["state"] not in ("completed", "failed"):
            await asyncio.sleep(LOOK_S)
            peaks.look(site)
            if not ending.done():
                largest = max(largest, await backlog_s(database))
            summary = (await client.get(f"/api/summaries/{summary['id']}")).json()
            seen.setdefault(summary["state"], time.monotonic())
        completed = time.monotonic()
        transcript = (await client.get(f"/api/summaries/{summary['id']}/transcript")).json()
    print(f"state: {summary['state']} {summary['error'] or ''}")
    print(f"recorded {transcript['expected_seconds']:.0f} s, decoded {transcript['decoded_seconds']:.0f} s")
    print(f"from the end of the stream to the completed summary: {completed - await ending:.1f} s")
    for state in ("transcribing", "writing"):
        print(f"  of that until {state}: {max(seen.get(state, completed) - ending.result(), 0.0):.1f} s")
    print(f"largest backlog of recorded and not yet recognised sound: {largest:.0f} s")
    for role, size in sorted(peaks.found.items()):
        print(f"peak memory, {role}: {size:.0f} MB")


async def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        catalogue(folder)
        with origin(folder) as address:
            host = re.sub(r"^https?://", "", address)
            model = str(Path(".baton/models/whisper-base").resolve())
            variables = {"BATON_ALLOW_HOSTS": host, "BATON_ASR_MODEL": model}
            async with running_site(folder / "data", **variables) as site:
                print(f"{MINUTES:g} minutes of talk at {SPEED:g} times the clock", flush=True)
                await measure(site, f"{address}/live/hour.m3u8")


if __name__ == "__main__":
    asyncio.run(main())
