"""Hooks of a stream's own system: signed, recent, and harmless however often and in whatever order they come."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from activities.adapters.objects import derived_id
from activities.adapters.sessions import normalised
from activities.plans import watch_key
from app.stream_hooks import signature
from kernel import workflow_id_of
from tests.web_kit import STREAM, WebKit, open_web_kit

STREAM_ID = derived_id("str", normalised(STREAM))
STARTED = b'{"id": "s2", "event": "started"}'
ENDED = b'{"id": "e1", "event": "ended"}'


@pytest.fixture
async def web(server_urls: Any, db: Any, redis: Any, prefix: str) -> AsyncIterator[WebKit]:
    async with open_web_kit(server_urls, db, prefix) as kit:
        yield kit


@pytest.fixture
async def secret(web: WebKit) -> str:
    """Of a stream that somebody waits for."""
    await web.subscribe()
    async with web.client("operator") as operator:
        return (await operator.get(f"/api/ops/streams/{STREAM_ID}/hook")).json()["secret"]


async def sent(web: WebKit, secret: str, body: bytes = ENDED, *, age_s: int = 0, stream_id: str = STREAM_ID) -> Any:
    at = str(int(time.time()) - age_s)
    headers = {"X-Baton-Timestamp": at, "X-Baton-Signature": signature(secret, at, body)}
    async with web.client(None) as client:
        return await client.post(f"/hooks/streams/{stream_id}", content=body, headers=headers)


async def test_a_signed_word_is_stored_and_rung_once_however_often_it_comes(web: WebKit, secret: str, db: Any) -> None:
    answers = [await sent(web, secret) for _ in range(3)]
    assert [(one.status_code, one.json()) for one in answers] == [(202, {"accepted": True})] * 3
    (session,) = await db["sessions"].find({}).to_list(2)
    assert session["hint"] == "ended"
    (signal,) = await db["workflow_signals"].find({"signal_type": "stream_hint"}).to_list(5)
    assert (signal["workflow_id"], signal["generation"]) == (workflow_id_of(watch_key(session["_id"])), 1)


@pytest.mark.parametrize("age_s", [301 + 30, -301 - 30])
async def test_a_word_that_is_old_or_from_the_future_is_refused(web: WebKit, secret: str, db: Any, age_s: int) -> None:
    answer = await sent(web, secret, age_s=age_s)
    assert (answer.status_code, answer.json()["code"]) == (401, "bad_signature")
    assert await db["workflow_signals"].count_documents({}) == 0


async def test_a_word_of_somebody_else_is_refused_without_telling_why(web: WebKit, secret: str, db: Any) -> None:
    refused = [
        await sent(web, "guessed"),
        await sent(web, ""),
        await sent(web, secret, stream_id="str_nobody"),
        await sent(web, "", stream_id="str_nobody"),
    ]
    async with web.client(None) as client:
        refused.append(await client.post(f"/hooks/streams/{STREAM_ID}", content=ENDED))
    assert {(one.status_code, one.text) for one in refused} == {(401, refused[0].text)}
    assert await db["workflow_signals"].count_documents({}) == 0


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"id": "e", "event": "paused"}', b'{"event": "ended"}'])
async def test_a_signed_body_that_is_no_event_is_named(web: WebKit, secret: str, body: bytes) -> None:
    answer = await sent(web, secret, body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_a_session_that_is_over_listens_no_more(web: WebKit, secret: str) -> None:
    async with web.client("li") as li:
        (record,) = (await li.get("/api/summaries")).json()
    await web.record_session(record)
    assert (await sent(web, secret)).json() == {"accepted": False}


async def test_a_stream_that_starts_again_is_a_new_session_that_is_recorded_whoever_waits(
    web: WebKit, secret: str, db: Any
) -> None:
    async with web.client("li") as li:
        (record,) = (await li.get("/api/summaries")).json()
        await web.record_session(record)
        assert (await sent(web, secret, STARTED, age_s=60)).json() == {"accepted": False}, "signed before it was over"
        await db["sessions"].update_one({}, {"$set": {"ended_at": datetime.now(UTC) - timedelta(seconds=2)}})
        answers = [(await sent(web, secret, STARTED)).json() for _ in range(3)]
        again = await li.post("/api/summaries", json={"url": STREAM})
    assert answers == [{"accepted": True}] * 3
    first, second = await db["sessions"].find({}).sort("number", 1).to_list(5)
    assert (first["state"], second["state"], second["hint"]) == ("ready", "scheduled", "started")
    watches = await db["workflow_instances"].find({"type": "stream_watch"}).to_list(5)
    assert [one["biz_key"] for one in watches] == [watch_key(second["_id"])]
    assert (again.status_code, again.json()["session_id"]) == (201, second["_id"])


async def test_only_operators_see_a_secret(web: WebKit, secret: str) -> None:
    async with web.client("li") as li:
        assert (await li.get(f"/api/ops/streams/{STREAM_ID}/hook")).status_code == 403
    async with web.client("operator") as operator:
        assert (await operator.get("/api/ops/streams/str_nobody/hook")).status_code == 404
