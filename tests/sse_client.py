"""A reader of server-sent events that keeps what a browser would keep: the text, the last id, the events in order."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass
class Browser:
    """One tab. It may be connected several times, one after another, and says then where it was."""

    url: str
    headers: dict[str, str]
    text: str = ""
    last_id: str = ""
    events: list[tuple[str, Any]] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    ended: bool = False
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    @property
    def done(self) -> dict[str, Any] | None:
        return next((data for name, data in reversed(self.events) if name == "done"), None)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[asyncio.Task[None]]:
        """Reads in the background; the task ends when the server ends the connection."""
        self.ended = False
        reading = asyncio.create_task(self.read())
        try:
            yield reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def read(self) -> None:
        """Until the connection ends."""
        try:
            await self._read()
        finally:
            async with self.changed:
                self.ended = True
                self.changed.notify_all()

    async def _read(self) -> None:
        sent = {**self.headers, "accept": "text/event-stream"} | (
            {"last-event-id": self.last_id} if self.last_id else {}
        )
        async with httpx.AsyncClient(timeout=60) as client, client.stream("GET", self.url, headers=sent) as answer:
            assert answer.status_code == 200, await answer.aread()
            assert answer.headers["content-type"].startswith("text/event-stream")
            block: list[str] = []
            async for line in answer.aiter_lines():
                self.raw.append(line)
                if line:
                    block.append(line)
                    continue
                await self._take(block)
                block = []

    async def _take(self, block: list[str]) -> None:
        fields = dict(line.split(": ", 1) for line in block if not line.startswith(":"))
        if "event" not in fields:
            return
        name, data = fields["event"], json.loads(fields["data"])
        async with self.changed:
            self.last_id = fields.get("id", self.last_id)
            self.text = "" if name == "reset" else self.text + (data["t"] if name == "text" else "")
            self.events.append((name, data))
            self.changed.notify_all()

    async def until(self, name: str, count: int = 1) -> Any:
        """The data of the `count`-th event of that name, once it has come."""
        await self._until(lambda: self.names.count(name) >= count)
        return [data for one, data in self.events if one == name][count - 1]

    async def until_text(self, text: str) -> None:
        """Wait until exactly this text is shown."""
        await self._until(lambda: self.text == text)

    async def _until(self, holds: Callable[[], bool]) -> None:
        """A connection that ends before it holds is a failure, with what came so far."""
        async with self.changed:
            await self.changed.wait_for(lambda: holds() or self.ended)
        assert holds(), self.events
