"""Single media files over real HTTP and as uploads: what becomes a recording, and what leads nowhere."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from activities.adapters.decoding import decode_seconds
from activities.adapters.fetch import Fetcher
from activities.adapters.files import MediaFiles
from activities.adapters.guard import AddressGuard
from activities.adapters.hls import HlsSource
from activities.adapters.recordings import UPLOADS, GridRecordings
from activities.ports import FileFound, SourceFault, SourceGone, SourceRefused
from activities.uploads import upload_address
from kernel.testing import Crash, crash_at
from tests.clips import clip, tone

RATE = 44_100
LENGTH_S = 12.5


def sounds(container: str, codec: str, **options: Any) -> bytes:
    return clip(container, codec, tone(LENGTH_S, RATE), RATE, **options)


KINDS = {
    "talk.mp3": lambda: sounds("mp3", "mp3"),
    "talk.mp4": lambda: sounds("mp4", "aac", video=True),
    "talk.webm": lambda: clip("webm", "libopus", tone(LENGTH_S, 48_000), 48_000),
    "talk.wav": lambda: sounds("wav", "pcm_s16le"),
    "talk.ogg": lambda: clip("ogg", "libopus", tone(LENGTH_S, 48_000), 48_000),
}


class Origin:
    """Serves bodies by path, and counts what it is asked for."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.asked: list[str] = []
        origin = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                origin.asked.append(self.path)
                body = origin.bodies.get(self.path.partition("?")[0])
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def origin() -> Iterator[Origin]:
    opened = Origin()
    yield opened
    opened.close()


@pytest.fixture
def private() -> Iterator[Origin]:
    """One that nobody may reach."""
    opened = Origin()
    yield opened
    opened.close()


@pytest.fixture
async def fetcher(origin: Origin) -> AsyncIterator[Fetcher]:
    opened = Fetcher(AddressGuard([origin.host]))
    yield opened
    await opened.aclose()


@pytest.fixture
def uploads(db: Any) -> GridRecordings:
    return GridRecordings(db, UPLOADS)


@pytest.fixture
def recordings(db: Any) -> GridRecordings:
    return GridRecordings(db)


@pytest.fixture
def files(fetcher: Fetcher, uploads: GridRecordings, recordings: GridRecordings) -> MediaFiles:
    return MediaFiles(fetcher, uploads, recordings)


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), 50_000):
        yield data[begin : begin + 50_000]


@pytest.mark.parametrize("name", KINDS)
async def test_a_file_on_the_web_becomes_a_recording(name, files, recordings, origin, fetcher) -> None:
    url = f"http://{origin.host}/{name}?token=secret"
    origin.bodies[f"/{name}"] = await asyncio.to_thread(KINDS[name])
    with pytest.raises(FileFound):
        await HlsSource(fetcher).playlist(url)
    packaged = await files.record(url, "ses_1", 1)
    data = await recordings.read(packaged.media_id)
    assert (packaged.size_bytes, data[:4]) == (len(data), b"OggS")
    assert packaged.duration_s == pytest.approx(LENGTH_S, abs=0.1)
    assert decode_seconds(data) == pytest.approx(LENGTH_S, abs=0.1)


async def test_an_upload_becomes_a_recording(files, recordings, uploads) -> None:
    address = upload_address("usr_1", "../Talk of the day.mp3")
    assert address.endswith("/..%20Talk%20of%20the%20day.mp3")
    await uploads.store(address, pieces(await asyncio.to_thread(KINDS["talk.mp3"])))
    packaged = await files.record(address, "ses_1", 1)
    assert packaged.duration_s == pytest.approx(LENGTH_S, abs=0.1)
    assert decode_seconds(await recordings.read(packaged.media_id)) == pytest.approx(LENGTH_S, abs=0.1)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_death_while_a_file_is_stored_costs_nothing_but_time(moment, files, recordings, uploads) -> None:
    address = upload_address("usr_1", "talk.mp3")
    data = await asyncio.to_thread(KINDS["talk.mp3"])
    with crash_at(f"GridRecordings.store:{moment}"), pytest.raises(Crash):
        await uploads.store(address, pieces(data))
    assert await uploads.holds(address) == (moment == "after")
    address = upload_address("usr_1", "talk.mp3")
    await uploads.store(address, pieces(data))
    with crash_at(f"GridRecordings.store:{moment}"), pytest.raises(Crash):
        await files.record(address, "ses_1", 1)
    packaged = await files.record(address, "ses_1", 1)
    assert packaged.duration_s == pytest.approx(LENGTH_S, abs=0.1)


@pytest.mark.parametrize("head", [b"", b"ID3\x04\x00\x00\x00\x00\x00\x00", b"\x00\x00\x00\x18ftypmp42"])
@pytest.mark.parametrize(
    "body",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{}\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile {}\n",
        "file '{}'\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns={}\n",
        "[playlist]\nFile1={}\n",
        "<smil><body><audio src='{}'/></body></smil>",
    ],
)
async def test_a_list_dressed_as_media_leads_nowhere(head, body, files, uploads, private) -> None:
    private.bodies["/secret.mp3"] = await asyncio.to_thread(KINDS["talk.mp3"])
    for target in (f"http://{private.host}/secret.mp3", "file:///etc/passwd"):
        address = upload_address("usr_1", "talk.mp3")
        await uploads.store(address, pieces(head + body.format(target).encode()))
        with pytest.raises(SourceRefused, match="cannot be heard"):
            await files.record(address, "ses_1", 1)
    assert private.asked == []


async def test_a_picture_without_sound_is_named(files, uploads) -> None:
    address = upload_address("usr_1", "talk.mp4")
    await uploads.store(address, pieces(b"\x89PNG\r\n\x1a\n" + bytes(200)))
    with pytest.raises(SourceRefused, match="cannot be heard"):
        await files.record(address, "ses_1", 1)


async def test_what_is_not_there_has_a_name(files, origin) -> None:
    with pytest.raises(SourceRefused, match="upload it again"):
        await files.record(upload_address("usr_1", "talk.mp3"), "ses_1", 1)
    with pytest.raises(SourceGone):
        await files.record(f"http://{origin.host}/none.mp3", "ses_1", 1)
    with pytest.raises((SourceRefused, SourceFault)):
        await files.record("http://127.0.0.1:9/talk.mp3", "ses_1", 1)
