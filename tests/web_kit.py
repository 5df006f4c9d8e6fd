"""The web as wired for production, on the test's database and Redis, listening on a port.

Nothing runs workflows here: a test moves the records itself, as the activities would.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from argon2 import PasswordHasher

from activities.adapters.quota import QuotaRecords
from activities.adapters.recordings import GridRecordings
from activities.adapters.sessions import SessionRecords
from activities.adapters.summaries import SummaryRecords
from activities.adapters.transcripts import TranscriptRecords
from activities.payloads import Chapter, Composed, Packaged, SpeechSegment, SpeechStatus, Usage
from activities.plans import summary_key
from app.accounts import Accounts, Role
from app.ports import free_port
from app.serving import serve
from app.settings import Settings, Suggested
from app.web.application import create_app
from app.web.parts import WebParts
from app.wiring import web_parts
from kernel import Clock
from kernel.stream import StreamKey

STREAM = "http://127.0.0.1:1/live/night-talk.m3u8"
PEOPLE: dict[str, tuple[str, Role]] = {
    "li": ("a stream of words", "subscriber"),
    "mei": ("another password", "subscriber"),
    "operator": ("keeps an eye on it", "operator"),
}
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
ONE_PIECE = 1000


@dataclass
class Stores:
    """What the activities would write to."""

    sessions: SessionRecords
    transcripts: TranscriptRecords
    summaries: SummaryRecords
    recordings: GridRecordings


@dataclass
class WebKit:
    """A running web app and everything behind it."""

    url: str
    parts: WebParts
    stores: Stores
    tokens: dict[str, str]

    def client(self, name: str | None = "li", **headers: str) -> httpx.AsyncClient:
        """A program of that person's; None has no token."""
        token = {"authorization": f"Bearer {self.tokens[name]}"} if name else {}
        return httpx.AsyncClient(base_url=self.url, headers=token | headers, timeout=20)

    async def subscribe(self, name: str = "li", url: str = STREAM, **fields: str) -> dict[str, Any]:
        """The record of a new summary."""
        async with self.client(name) as client:
            answer = await client.post("/api/summaries", json={"url": url, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def record_session(self, record: dict[str, Any], audio: bytes = b"OggS" * 2500) -> None:
        """The stream has ended and its recording is there."""
        session_id, sessions = record["session_id"], self.stores.sessions
        await sessions.mark(session_id, 1, "live", title="Architecture Night Talk")
        await sessions.mark(session_id, 1, "ended")
        media_id = f"media-{session_id}"
        size = await self.stores.recordings.store(media_id, _pieces(audio))
        await sessions.attach_media(session_id, 1, Packaged(media_id, 61.0, size))
        await sessions.mark_ready(session_id, 1)

    async def transcribe(self, record: dict[str, Any], *texts: str) -> None:
        """The transcript of the session, each text four seconds long."""
        transcript = await self.stores.transcripts.ensure(record["session_id"])
        segments = [SpeechSegment(4.0 * place, 4.0 * place + 4, text) for place, text in enumerate(texts)]
        status = SpeechStatus("t1", "completed", 100.0, "en", segments, decoded_s=61.0)
        await self.stores.transcripts.store_window(transcript.transcript_id, 1, 0, status, 61.0, None)
        await self.stores.transcripts.mark_completed(transcript.transcript_id, 1)

    async def complete(self, record: dict[str, Any], text: str) -> None:
        """The text is stored and the summary finished."""
        composed = Composed(text, [Chapter(0.0, "Leases")], Usage(210, 40), "test-writer")
        await self.stores.summaries.store_composed(record["id"], record["round"], composed)
        await self.stores.summaries.mark_completed(record["id"], record["round"])

    def key(self, record: dict[str, Any]) -> StreamKey:
        """The client stream of the record's round."""
        return StreamKey(summary_key(record["id"]), record["workflow_id"], record["round"])


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), ONE_PIECE):
        yield content[start : start + ONE_PIECE]


@asynccontextmanager
async def open_web_kit(urls: tuple[str, str], db: Any, prefix: str, **changed: Any) -> AsyncIterator[WebKit]:
    """The kit, listening; its people exist. `changed`: settings that differ."""
    async with web_parts(settings_on(urls, db.name, prefix, changed)) as parts:
        accounts = Accounts(db, Clock(), CHEAP)
        tokens = {name: await accounts.ensure(name, word, role) for name, (word, role) in PEOPLE.items()}
        port = free_port()
        server = asyncio.create_task(serve(create_app(parts), "127.0.0.1", port, parts.stopping, grace_s=5))
        try:
            yield await _listening(WebKit(f"http://127.0.0.1:{port}", parts, stores_on(db), tokens), server)
        finally:
            parts.stopping.set()
            await server


async def _listening(kit: WebKit, server: asyncio.Task[None]) -> WebKit:
    async with kit.client(None) as client:
        while not server.done():
            try:
                await client.get("/sign-in")
            except httpx.ConnectError:
                await asyncio.sleep(0.02)
            else:
                return kit
    raise AssertionError("the server ended before it listened")


def settings_on(urls: tuple[str, str], database: str, prefix: str, changed: dict[str, Any]) -> Settings:
    """The settings of a web app on these servers."""
    usual = {
        "mongo_url": urls[0],
        "mongo_database": database,
        "redis_url": urls[1],
        "redis_prefix": prefix,
        "allow_hosts": "127.0.0.1:1",
        "secret": "a secret of this test",
        "openai_model": "test-writer",
        "suggested_streams": [Suggested("Architecture Night Talk", STREAM, "en", 60.0)],
    }
    return Settings(**(usual | changed))


def stores_on(db: Any) -> Stores:
    """The stores over a database."""
    clock = Clock()
    return Stores(
        SessionRecords(db, clock),
        TranscriptRecords(db, clock, provider="test", model="base"),
        SummaryRecords(db, clock, QuotaRecords(db, clock, per_day=100)),
        GridRecordings(db),
    )
