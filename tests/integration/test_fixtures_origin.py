"""The origin as a process: it answers, plays by the clock, and carries on after a restart."""

import asyncio
import re
import signal
import sys
import time
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import m3u8
import pytest

from fixtures import adts, catalogue
from fixtures.catalogue import HERE
from fixtures.starts import Starts


@asynccontextmanager
async def origin(*options: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an origin of its own; at the end SIGTERM, and the origin is gone."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fixtures.origin", *options, stdout=asyncio.subprocess.PIPE, cwd=HERE.parent
    )
    assert process.stdout
    try:
        line = (await process.stdout.readline()).decode()
        ready = re.fullmatch(r"origin ready on (http://127\.0\.0\.1:\d+)\n", line)
        assert ready, line
        async with httpx.AsyncClient(base_url=ready[1]) as client:
            yield client
            process.send_signal(signal.SIGTERM)
            assert await process.wait() in (0, -signal.SIGTERM)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def playlist(client: httpx.AsyncClient, address: str) -> m3u8.M3U8:
    answer = await client.get(address)
    assert answer.status_code == 200, answer.text
    return m3u8.loads(answer.text, uri=str(answer.url))


async def listen(client: httpx.AsyncClient, address: str, last: int) -> dict[int, httpx.Response]:
    """Follow a media playlist until segment `last` was listed: what each listed segment answered."""
    heard: dict[int, httpx.Response] = {}
    while last not in heard:
        read = await playlist(client, address)
        for number, segment in enumerate(read.segments, read.media_sequence or 0):
            if number not in heard:
                heard[number] = await client.get(segment.absolute_uri)
        await asyncio.sleep(0.02)  # the next look; nothing depends on its length
    return heard


async def test_a_listener_gets_the_whole_talk():
    last = catalogue.load()["night-talk"].timeline.count - 1
    async with origin("--speed", "40") as client:
        heard = await listen(client, "/live/night-talk.m3u8?run=test", last)
        assert list(heard) == list(range(last + 1))
        assert {answer.headers["content-type"] for answer in heard.values()} == {"video/mp2t"}
        assert all(len(answer.content) % 188 == 0 for answer in heard.values())
        assert (await playlist(client, "/live/night-talk.m3u8?run=test")).is_endlist


async def test_a_lossy_broadcast_is_heard_with_its_gaps():
    show = catalogue.load()["field-notes"]
    async with origin("--speed", "20") as client:
        master = await playlist(client, "/live/field-notes.m3u8?run=test")
        rendition = master.media[0].absolute_uri
        heard = await listen(client, rendition, show.timeline.count - 1)
        assert not heard.keys() & show.programme.skipped
        assert {number for number, answer in heard.items() if answer.status_code == 404} == show.programme.unreadable
        assert not (await playlist(client, rendition)).is_endlist


async def test_a_broadcast_that_went_away_answers_404(tmp_path: Path):
    Starts(tmp_path).begin("field-notes", "yesterday", time.time() - 86_400)
    async with origin("--state", str(tmp_path)) as client:
        assert (await client.get("/live/field-notes.m3u8?run=yesterday")).status_code == 404
        assert (await client.get("/live/field-notes.m3u8?run=today")).status_code == 200


async def test_any_audio_file_can_be_broadcast(tmp_path: Path):
    with wave.open(str(tmp_path / "hum.wav"), "wb") as sink:
        sink.setparams((1, 2, 16_000, 0, "NONE", ""))
        sink.writeframes(b"\0\1" * 16_000 * 7)
    async with origin("--extra", f"hum={tmp_path / 'hum.wav'}", "--speed", "20") as client:
        listed = (await client.get("/streams.json")).json()
        assert listed[-1]["title"] == "Hum"
        heard = await listen(client, listed[-1]["path"], last=2)
        assert {answer.status_code for answer in heard.values()} == {200}


async def test_the_hour_long_stream_is_there_at_once():
    async with origin() as client:
        read = await playlist(client, "/live/long-walk.m3u8?run=test")
        assert read.is_endlist
        assert sum(segment.duration or 0 for segment in read.segments) >= 3600
        last = await client.get(read.segments[-1].absolute_uri)
        assert last.headers["content-type"] == "audio/aac"
        assert adts.split(last.content[73:]).duration_s == pytest.approx(read.segments[-1].duration, abs=0.001)


async def test_a_broadcast_plays_on_after_a_restart(tmp_path: Path):
    begun_at = []
    for _ in range(2):
        async with origin("--state", str(tmp_path)) as client:
            read = await playlist(client, "/live/evening-walk.m3u8?run=test")
            assert read.media_sequence == 0
            begun_at.append(read.segments[0].program_date_time)
    assert begun_at[0] == begun_at[1]


async def test_head_and_other_methods():
    async with origin() as client:
        head = await client.head("/live/night-talk.m3u8?run=test")
        assert (head.status_code, head.content) == (200, b"")
        assert int(head.headers["content-length"]) > 0
        assert (await client.post("/live/night-talk.m3u8")).status_code == 405


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--speed", "0"], "--speed must be above 0"),
        (["--audio", "/nowhere"], "/nowhere/streams.json"),
        (["--extra", "talk=/nowhere.wav"], "/nowhere.wav"),
    ],
)
async def test_wrong_options_are_named(options: list[str], complaint: str):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fixtures.origin", *options, stderr=asyncio.subprocess.PIPE, cwd=HERE.parent
    )
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert complaint in errors.decode()
    assert "Traceback" not in errors.decode()
