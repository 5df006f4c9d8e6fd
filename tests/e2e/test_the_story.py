"""The main job over HTTP: three people, one live stream, one transcription, and each reads the whole text."""

import asyncio
import re
from pathlib import Path
from secrets import token_hex

import httpx
import jiwer
import pytest

from tests.e2e.site import Heard, Site, follow, listen, running_site, subscribe

SCRIPT = Path(__file__).parents[2] / "fixtures" / "scripts" / "night-talk.txt"
STORY_S = 300


@pytest.fixture(scope="module")
async def site(tmp_path_factory):
    async with running_site(tmp_path_factory.mktemp("baton")) as site:
        yield site


def words(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.lower().replace("-", " ")))


async def until(site: Site, person: dict, summary_id: str, *states: str) -> dict:
    async with site.client(person) as client:
        while True:
            found = (await client.get(f"/api/summaries/{summary_id}")).json()
            if found["state"] in (*states, "failed", "canceled", "completed"):
                return found
            await asyncio.sleep(0.1)


async def in_the_middle(site: Site, person: dict, summary_id: str) -> Heard:
    await until(site, person, summary_id, "writing")
    return await listen(site, person, summary_id, Heard())


@pytest.mark.timeout(STORY_S)
async def test_three_people_read_one_stream_and_all_see_the_whole_text(site: Site) -> None:
    people = site.facts["users"]
    url = f"{site.stream()}?run={token_hex(4)}"
    made = [await subscribe(site, person, url) for person in people]
    assert len({one["id"] for one in made}) == 3
    late = asyncio.create_task(in_the_middle(site, people[0], made[0]["id"]))
    heard = await asyncio.gather(*(follow(site, p, m["id"]) for p, m in zip(people, made, strict=True)))
    for one in heard:
        assert one.done["state"] == "completed", one.done
        assert {name for name, _ in one.events} >= {"state", "text", "done"}
        assert one.text == one.done["text"] != ""
    assert (await late).text == heard[0].text
    after = await listen(site, people[0], made[0]["id"], Heard())
    assert after.text == heard[0].text

    async with site.client(people[0]) as client:
        transcript = (await client.get(f"/api/summaries/{made[0]['id']}/transcript")).json()
        audio = await client.get(f"/api/summaries/{made[0]['id']}/audio", headers={"Range": "bytes=0-3"})
    said = " ".join(segment["text"] for segment in transcript["segments"])
    assert jiwer.wer(words(SCRIPT.read_text(encoding="utf-8")), words(said)) <= 0.10
    assert (audio.status_code, audio.content) == (206, b"OggS")

    async with site.client(site.facts["operator"]) as client:
        of_type = (await client.get("/api/ops/workflows", params={"type": "stream_transcript"})).json()
        assert len([w for w in of_type if made[0]["session_id"][:4]]) == 1, "one transcription served all three"
        for one in made:
            detail = (await client.get(f"/api/ops/workflows/{one['workflow_id']}")).json()
            completed = [a["step"] for a in detail["attempts"] if a["status"] == "completed"]
            assert completed == ["preprocess", "transcribe", "compose", "finalize"]


async def test_what_is_wrong_gets_a_clear_answer_and_leaves_nothing_behind(site: Site) -> None:
    person, other, _ = site.facts["users"]
    url = f"{site.stream()}?run={token_hex(4)}"
    async with site.client(person) as client:
        before = (await client.get("/api/summaries")).json()
        for bad in ("not an address", "ftp://example.com/a", "http://127.0.0.1:1/a", "http://169.254.169.254/", ""):
            answer = await client.post("/api/summaries", json={"url": bad})
            assert answer.status_code == 422, (bad, answer.text)
            assert set(answer.json()) >= {"status_code", "detail", "code"}
        assert (await client.get("/api/summaries/sum_unknown")).status_code == 404
        too_large = await client.post("/api/summaries", content=b'{"url":"' + b"x" * 1_000_000 + b'"}')
        assert too_large.status_code == 413
        assert too_large.json()["code"]
        assert (await client.get("/api/summaries")).json() == before
        key = {"Idempotency-Key": token_hex(8)}
        first = await client.post("/api/summaries", json={"url": url}, headers=key)
        again = await client.post("/api/summaries", json={"url": url}, headers=key)
        misused = await client.post("/api/summaries", json={"url": url, "style": "detailed"}, headers=key)
        assert (first.status_code, again.status_code, misused.status_code) == (201, 200, 409)
        assert first.json()["id"] == again.json()["id"]
        await client.delete(f"/api/summaries/{first.json()['id']}")
    async with site.client(other) as client:
        assert (await client.get(f"/api/summaries/{first.json()['id']}")).status_code == 404
        assert (await client.get("/api/ops/overview")).status_code == 403
    async with httpx.AsyncClient(base_url=site.facts["url"], trust_env=False) as client:
        answer = await client.get("/api/summaries", headers={"Authorization": "Bearer wrong"})
        assert answer.status_code == 401
