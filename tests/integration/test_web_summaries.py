"""The contract of `/api/summaries` over the real business service."""

import asyncio

import httpx
import pytest

from tests.web_kit import STREAM, open_web_kit

TEXT = "## Leases\n\n* A lease **ends by itself**.\n"
FIELDS = """id url title state step steps progress reason round workflow_id session_id text html chapters usage
created_at finished_at error"""
AUDIO = bytes(range(256)) * 1200


@pytest.fixture
async def web(server_urls, db, redis, prefix):
    async with open_web_kit(server_urls, db, prefix) as kit:
        yield kit


async def finished(web) -> dict:
    """A summary with recording, transcript and text."""
    record = await web.subscribe()
    await web.record_session(record, AUDIO)
    await web.transcribe(record, "Good evening.", "Leases end by themselves.")
    await web.complete(record, TEXT)
    async with web.client() as li:
        return (await li.get(f"/api/summaries/{record['id']}")).json()


async def test_a_new_summary_is_created_with_every_field_of_the_contract(web):
    async with web.client() as li:
        answer = await li.post("/api/summaries", json={"url": STREAM})
        record = answer.json()
        assert answer.status_code == 201
        assert answer.headers["location"] == f"/api/summaries/{record['id']}"
        for name in FIELDS.split():
            assert name in record
        assert record["state"] == "waiting_for_stream"
        assert [set(step) for step in record["steps"]] == [{"name", "status", "attempt"}] * 4
        assert (await li.get("/api/summaries")).json()[0]["id"] == record["id"]


async def test_the_same_stream_style_and_language_is_the_same_summary(web):
    async with web.client() as li:
        first = await li.post("/api/summaries", json={"url": STREAM})
        again = await li.post("/api/summaries", json={"url": STREAM, "style": "brief", "language": "auto"})
        other = await li.post("/api/summaries", json={"url": STREAM, "style": "minutes"})
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 201)
    assert first.json()["id"] == again.json()["id"] != other.json()["id"]


async def test_the_list_goes_on_before_the_last_one_seen(web):
    records = [await web.subscribe(url=f"{STREAM}?run={number}") for number in range(3)]
    async with web.client() as li:
        first = (await li.get("/api/summaries?limit=2")).json()
        rest = (await li.get(f"/api/summaries?limit=2&before={first[-1]['id']}")).json()
    assert [record["id"] for record in first + rest] == [record["id"] for record in reversed(records)]


async def test_a_finished_summary_has_its_text_its_html_and_its_transcript(web):
    record = await finished(web)
    assert (record["state"], record["text"], record["writer"]) == ("completed", TEXT, "test-writer")
    assert "<strong>ends by itself</strong>" in record["html"]
    assert record["usage"] == {"prompt_tokens": 210, "completion_tokens": 40, "cost": None}
    async with web.client() as li:
        transcript = (await li.get(f"/api/summaries/{record['id']}/transcript")).json()
    assert [segment["text"] for segment in transcript["segments"]] == ["Good evening.", "Leases end by themselves."]
    assert transcript["language"] == "en"
    assert {"gaps", "decoded_seconds", "expected_seconds"} <= set(transcript)


async def test_the_recording_is_given_whole_and_in_ranges(web):
    record = await finished(web)
    path = f"/api/summaries/{record['id']}/audio"
    async with web.client() as li:
        whole = await li.get(path)
        assert (whole.status_code, whole.content) == (200, AUDIO)
        assert whole.headers["accept-ranges"] == "bytes"
        told = await li.head(path)
        assert (told.status_code, told.content) == (200, b"")
        shown = ("content-length", "content-type", "accept-ranges", "etag")
        assert [told.headers[name] for name in shown] == [whole.headers[name] for name in shown]
        part = await li.get(path, headers={"range": "bytes=1000-1999"})
        assert (part.status_code, part.content) == (206, AUDIO[1000:2000])
        assert part.headers["content-range"] == f"bytes 1000-1999/{len(AUDIO)}"
        tail = await li.get(path, headers={"range": "bytes=-10"})
        assert tail.content == AUDIO[-10:]
        same = await li.get(path, headers={"range": "bytes=5-5", "if-range": whole.headers["etag"]})
        other = await li.get(path, headers={"range": "bytes=5-5", "if-range": '"another"'})
        assert (same.status_code, other.status_code) == (206, 200)
        beyond = await li.get(path, headers={"range": f"bytes={len(AUDIO)}-"})
        assert (beyond.status_code, beyond.json()["code"]) == (416, "range_not_satisfiable")
        assert beyond.headers["content-range"] == f"bytes */{len(AUDIO)}"


@pytest.mark.parametrize(
    ("extension", "begins", "media_type"),
    [
        ("md", "# Architecture Night Talk\n\n## Leases", "text/markdown; charset=utf-8"),
        ("txt", "Architecture Night Talk\n\nLeases\n\n- A lease ends by itself.", "text/plain; charset=utf-8"),
        ("srt", "1\n00:00:00,000 --> 00:00:04,000\nGood evening.", "application/x-subrip; charset=utf-8"),
        ("vtt", "WEBVTT\n\n00:00:00.000 --> ", "text/vtt; charset=utf-8"),
        ("json", '{"summary":{"id":', "application/json"),
    ],
)
async def test_a_finished_summary_can_be_taken_along(web, extension, begins, media_type):
    record = await finished(web)
    async with web.client() as li:
        answer = await li.get(f"/api/summaries/{record['id']}/export.{extension}")
    assert answer.status_code == 200
    assert answer.text.startswith(begins)
    assert answer.headers["content-type"] == media_type
    assert f"Architecture-Night-Talk.{extension}" in answer.headers["content-disposition"]


async def test_what_is_not_finished_yet_says_so(web):
    record = await web.subscribe()
    async with web.client() as li:
        for path in ("transcript", "audio", "export.md"):
            answer = await li.get(f"/api/summaries/{record['id']}/{path}")
            assert (answer.status_code, answer.json()["code"]) == (409, "not_ready"), path


async def test_only_a_failed_summary_is_tried_again(web):
    record = await web.subscribe()
    path = f"/api/summaries/{record['id']}/retry"
    async with web.client() as li:
        early = await li.post(path)
        assert (early.status_code, early.json()["code"]) == (409, "not_failed")
        await web.stores.summaries.mark_failed(record["id"], 1, "The writer refused.")
        again = await li.post(path)
        assert (again.status_code, again.json()["round"]) == (200, 2)
        assert again.json()["error"] is None


async def test_a_removed_summary_is_gone_and_can_be_brought_back(web):
    record = await web.subscribe()
    path = f"/api/summaries/{record['id']}"
    async with web.client() as li:
        gone = await li.delete(path)
        assert (gone.status_code, gone.json()) == (200, {"id": record["id"], "removed": True, "undo_seconds": 10})
        assert (await li.get(path)).status_code == 404
        assert (await li.delete(path)).status_code == 404
        assert (await li.post(f"{path}/undo")).json()["id"] == record["id"]
        assert (await li.get(path)).status_code == 200
        assert (await li.post(f"{path}/undo")).json()["code"] == "not_removed"


async def test_the_health_names_the_weak_part(web):
    async with web.client(None) as anyone:
        answer = await anyone.get("/healthz")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "degraded",
        "mongo": "ok",
        "redis": "ok",
        "asr": "not set up",
        "writer": "not set up",
    }


async def test_only_without_the_database_is_the_site_unhealthy(web):
    async def hangs() -> None:
        await asyncio.Event().wait()

    async def refuses() -> None:
        raise ConnectionError("at mongodb://user:password@example.org")

    object.__setattr__(web.parts, "probes", {**web.parts.probes, "redis": hangs})
    async with web.client(None) as anyone:
        assert (await anyone.get("/healthz")).json()["redis"] == "no answer within 1 s"
        object.__setattr__(web.parts, "probes", {**web.parts.probes, "mongo": refuses})
        answer = await anyone.get("/healthz")
    assert (answer.status_code, answer.json()["mongo"]) == (503, "cannot be reached")
    assert "password" not in answer.text


async def test_the_api_is_described(web):
    async with httpx.AsyncClient(base_url=web.url) as anyone:
        schema = (await anyone.get("/schema")).json()
    assert {"/api/summaries", "/api/summaries/{summary_id}/events", "/api/ops/workflows/{workflow_id}"} <= set(
        schema["paths"]
    )
    assert "quota_exhausted" in schema["info"]["description"]
