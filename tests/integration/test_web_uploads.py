"""Uploading a file and subscribing to it."""

import httpx
import pytest

from tests.web_kit import open_web_kit


@pytest.fixture
async def web(server_urls, db, redis, prefix):
    async with open_web_kit(server_urls, db, prefix, upload_megabytes=1) as kit:
        yield kit


async def test_an_uploaded_file_can_be_subscribed_to(web) -> None:
    async with web.client() as li:
        answer = await li.post("/api/uploads", params={"name": "Night talk.mp3"}, content=b"ID3" * 1000)
        assert answer.status_code == 201
        assert answer.json()["size_bytes"] == 3000
        record = await li.post("/api/summaries", json={"url": answer.json()["url"]})
        assert record.status_code == 201
        assert (record.json()["title"], record.json()["state"]) == ("Night talk", "waiting_for_stream")


async def test_nobody_else_can_subscribe_to_it(web) -> None:
    async with web.client() as li, web.client("mei") as mei:
        url = (await li.post("/api/uploads", params={"name": "a.mp3"}, content=b"ID3")).json()["url"]
        refused = await mei.post("/api/summaries", json={"url": url})
        assert (refused.status_code, refused.json()["code"]) == (422, "bad_address")
        invented = await li.post("/api/summaries", json={"url": url.replace("a.mp3", "b.mp3")})
        assert invented.status_code == 422


async def test_a_file_over_the_limit_is_refused_and_not_kept(web, db) -> None:
    async with web.client() as li:
        answer = await li.post("/api/uploads", params={"name": "a.mp3"}, content=bytes(1_000_001))
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert (await li.post("/api/uploads", params={"name": "a.mp3"}, content=b"")).status_code == 422
        assert (await li.post("/api/uploads", content=b"ID3")).status_code == 422
    assert await db["uploads.files"].count_documents({}) == 0


async def test_who_is_not_signed_in_uploads_nothing(web, db) -> None:
    async with httpx.AsyncClient(base_url=web.url, trust_env=False) as nobody:
        answer = await nobody.post("/api/uploads", params={"name": "a.mp3"}, content=b"ID3")
    assert answer.status_code == 401
    assert await db["uploads.files"].count_documents({}) == 0
