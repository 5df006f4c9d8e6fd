"""The HLS source against a scripted server: masters, redirects, keys, init sections, and what is no playlist."""

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from activities.adapters import hls
from activities.adapters.fetch import Fetcher
from activities.adapters.guard import AddressGuard
from activities.adapters.hls import HlsSource
from activities.ports import SourceFault, SourceGone, SourceRefused
from tests.servers import Reply, ScriptedServer, ranged, redirect

KEY = bytes(range(16))
INIT = b"\x00\x00\x00\x18ftypiso6init"


@pytest.fixture
async def origin():
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def source(origin: ScriptedServer):
    fetcher = Fetcher(AddressGuard([origin.place]))
    yield HlsSource(fetcher)
    await fetcher.aclose()


def media(*lines: str, sequence: int = 0) -> Reply:
    head = ["#EXTM3U", "#EXT-X-TARGETDURATION:4", f"#EXT-X-MEDIA-SEQUENCE:{sequence}"]
    return Reply("\n".join([*head, *lines]).encode())


def master(*lines: str) -> Reply:
    return Reply("\n".join(["#EXTM3U", *lines]).encode())


def encrypted(plain: bytes, vector: int, key: bytes = KEY) -> bytes:
    padder = PKCS7(128).padder()
    cipher = Cipher(algorithms.AES(key), modes.CBC(vector.to_bytes(16))).encryptor()
    return cipher.update(padder.update(plain) + padder.finalize()) + cipher.finalize()


async def captured(source: HlsSource, url: str) -> list[bytes]:
    return [await source.segment(segment) for segment in (await source.playlist(url)).segments]


async def test_a_redirected_master_leads_to_its_audio_and_the_address_to_poll_next(source, origin) -> None:
    origin.on("/watch", redirect("/cdn/v1/master.m3u8?t=1"))
    origin.on(
        "/cdn/v1/master.m3u8",
        master(
            '#EXT-X-SESSION-DATA:DATA-ID="title",VALUE="Night Talk"',
            '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n",DEFAULT=YES,URI="../audio%20only/list.m3u8?t=2"',
            '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.64001f",AUDIO="a"', "video.m3u8",
        ),
    )  # fmt: skip
    origin.on("/cdn/audio%20only/list.m3u8", redirect("/edge/list.m3u8"))
    origin.on("/edge/list.m3u8", media("#EXTINF:4,", "/root/1.aac?x=y"))
    origin.on("/root/1.aac", Reply(b"sound"))
    got = await source.playlist(f"{origin.url}/watch")
    assert (got.media_url, got.title) == (f"{origin.url}/edge/list.m3u8", "Night Talk")
    assert await source.segment(got.segments[0]) == b"sound"
    assert "/cdn/v1/video.m3u8" not in origin.paths()


async def test_a_rendition_that_cannot_be_read_gives_way_to_the_next(source, origin) -> None:
    origin.on("/m", master(*(f"#EXT-X-STREAM-INF:BANDWIDTH={n}\n{n}.m3u8" for n in (1, 2))))
    origin.on("/1.m3u8", Reply(status=503))
    origin.on("/2.m3u8", media("#EXTINF:4,", "a.ts"))
    assert (await source.playlist(f"{origin.url}/m")).media_url.endswith("/2.m3u8")


async def test_where_no_rendition_can_be_read_the_best_ones_reason_is_told(source, origin) -> None:
    origin.on("/m", master(*(f"#EXT-X-STREAM-INF:BANDWIDTH={n}\n{n}.m3u8" for n in (1, 2))))
    origin.on("/1.m3u8", Reply(status=503))
    with pytest.raises(SourceFault, match="503"):
        await source.playlist(f"{origin.url}/m")


async def test_masters_that_lead_to_each_other_come_to_an_end(source, origin) -> None:
    origin.on("/m", master("#EXT-X-STREAM-INF:BANDWIDTH=1\nm"))
    with pytest.raises(SourceRefused, match="one master playlist to the next"):
        await source.playlist(f"{origin.url}/m")
    assert len(origin.requests) == 3


async def test_an_end_that_arrives_without_a_new_segment_or_on_an_empty_list_is_seen(source, origin) -> None:
    origin.on("/l", media("#EXTINF:4,", "1.ts"), media("#EXTINF:4,", "1.ts", "#EXT-X-ENDLIST"), media("#EXT-X-ENDLIST"))
    assert [(await source.playlist(f"{origin.url}/l")).ended for _ in range(3)] == [False, True, True]


async def test_a_restarted_encoder_and_a_jump_are_reported_as_the_list_numbers_them(source, origin) -> None:
    origin.on(
        "/l",
        media("#EXTINF:4,", "a.ts", sequence=143),
        media("#EXTINF:4,", "b.ts", sequence=174),
        media("#EXTINF:4,", "new/a.ts", sequence=0),
    )
    assert [(await source.playlist(f"{origin.url}/l")).segments[0].sequence for _ in range(3)] == [143, 174, 0]


async def test_encrypted_segments_are_decrypted_through_rotation_own_vectors_and_none(source, origin) -> None:
    other = bytes(range(16, 32))
    origin.on(
        "/l",
        media(
            '#EXT-X-KEY:METHOD=AES-128,URI="k1"', "#EXTINF:4,", "1.ts", "#EXTINF:4,", "2.ts",
            '#EXT-X-KEY:METHOD=AES-128,URI="k2",IV=0x99', "#EXTINF:4,", "3.ts",
            "#EXT-X-KEY:METHOD=NONE", "#EXTINF:4,", "4.ts",
            sequence=7,
        ),
    )  # fmt: skip
    origin.on("/k1", Reply(KEY))
    origin.on("/k2", Reply(other))
    origin.on("/1.ts", Reply(encrypted(b"one", 7)))
    origin.on("/2.ts", Reply(encrypted(b"two", 8)))
    origin.on("/3.ts", Reply(encrypted(b"three", 0x99, other)))
    origin.on("/4.ts", Reply(b"four"))
    assert await captured(source, f"{origin.url}/l") == [b"one", b"two", b"three", b"four"]
    assert origin.paths().count("/k1") == 1


@pytest.mark.parametrize(
    ("reply", "kind", "reason"),
    [
        (Reply(status=404), SourceGone, "A key could not be read: .* answered 404"),
        (Reply(KEY[:8]), SourceRefused, "The key has 8 bytes"),
        (Reply(b"<html>log in</html>"), SourceRefused, "The key has 19 bytes"),
    ],
)
async def test_a_key_that_is_missing_or_wrong_is_named(source, origin, reply, kind, reason) -> None:
    origin.on("/l", media('#EXT-X-KEY:METHOD=AES-128,URI="k"', "#EXTINF:4,", "1.ts"))
    origin.on("/1.ts", Reply(encrypted(b"one", 0)))
    origin.on("/k", reply)
    with pytest.raises(kind, match=reason):
        await captured(source, f"{origin.url}/l")


async def test_each_part_gets_the_init_section_of_its_place_and_ranges_are_honoured(source, origin) -> None:
    origin.on(
        "/l",
        media(
            f'#EXT-X-MAP:URI="all.mp4",BYTERANGE="{len(INIT)}@0"',
            "#EXTINF:4,", f"#EXT-X-BYTERANGE:3@{len(INIT)}", "all.mp4",
            "#EXTINF:4,", "#EXT-X-BYTERANGE:3", "all.mp4",
            "#EXT-X-DISCONTINUITY", '#EXT-X-MAP:URI="second.mp4"', "#EXTINF:4,", "4.m4s",
        ),
    )  # fmt: skip
    origin.on("/all.mp4", ranged(INIT + b"onetwo"))
    origin.on("/second.mp4", Reply(b"second-"))
    origin.on("/4.m4s", Reply(b"four"))
    assert await captured(source, f"{origin.url}/l") == [INIT + b"one", INIT + b"two", b"second-four"]
    assert len([r for r in origin.requests if r.headers.get("range") == f"bytes=0-{len(INIT) - 1}"]) == 1


async def test_an_encrypted_init_section_is_decrypted_and_a_plain_one_left_alone(source, origin) -> None:
    for name, section in (("plain", INIT), ("secret", encrypted(INIT, 5))):
        origin.on(
            f"/{name}",
            media('#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x5', f'#EXT-X-MAP:URI="{name}.mp4"', "#EXTINF:4,", "1.m4s"),
        )
        origin.on(f"/{name}.mp4", Reply(section))
    origin.on("/k", Reply(KEY))
    origin.on("/1.m4s", Reply(encrypted(b"one", 5)))
    assert await captured(source, f"{origin.url}/plain") == [INIT + b"one"]
    assert await captured(source, f"{origin.url}/secret") == [INIT + b"one"]


async def test_nothing_a_playlist_names_leads_to_a_private_listener(source, origin) -> None:
    async with ScriptedServer() as private:
        place = f"{private.url}/x"
        origin.on("/master", master(f"#EXT-X-STREAM-INF:BANDWIDTH=1\n{place}"))
        origin.on("/segment", media("#EXTINF:4,", place))
        origin.on("/key", media(f'#EXT-X-KEY:METHOD=AES-128,URI="{place}"', "#EXTINF:4,", "a.ts"))
        origin.on("/map", media(f'#EXT-X-MAP:URI="{place}"', "#EXTINF:4,", "a.ts"))
        origin.on("/file", media("#EXTINF:4,", "file:///etc/passwd"))
        origin.on("/a.ts", Reply(b"x" * 16))
        for path in ("/master", "/segment", "/key", "/map", "/file"):
            with pytest.raises(SourceRefused):
                await captured(source, origin.url + path)
        assert private.connections == 0


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        (Reply(b"<!doctype html><html><body>Watch live</body></html>"), "a web page"),
        (Reply(b"ID3" + bytes(5_000_000), headers={"Content-Type": "audio/mpeg"}), "an MP3 file"),
        (Reply(b"OggS" + bytes(9_000_000), headers={"Content-Type": "application/ogg"}), "an Ogg file"),
    ],
)
async def test_what_is_no_playlist_is_refused_with_what_it_is_and_a_hint(source, origin, reply, name) -> None:
    origin.on("/x", reply)
    with pytest.raises(SourceRefused, match=rf"is {name}.*not an HLS playlist.*\.m3u8"):
        await source.playlist(f"{origin.url}/x?token=s3cret")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(b""), SourceFault),
        (Reply(b" \n"), SourceFault),
        (Reply(status=403), SourceFault),
        (Reply(status=404), SourceGone),
        (Reply(b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:?\n"), SourceFault),
        (Reply(b"#EXTM3U\n" + b"#\n" * (hls.MAX_PLAYLIST_BYTES // 2)), SourceRefused),
    ],
    ids=["empty", "blank", "403", "404", "malformed", "huge"],
)
async def test_each_bad_answer_has_its_kind(source, origin, reply, kind) -> None:
    origin.on("/x", reply)
    with pytest.raises(kind):
        await source.playlist(f"{origin.url}/x")


async def test_an_empty_or_missing_segment_is_told_as_such(source, origin) -> None:
    origin.on("/l", media("#EXTINF:4,", "empty.ts", "#EXTINF:4,", "gone.ts"))
    origin.on("/empty.ts", Reply(b""))
    empty, gone = (await source.playlist(f"{origin.url}/l")).segments
    with pytest.raises(SourceFault, match="empty"):
        await source.segment(empty)
    with pytest.raises(SourceGone, match="A segment could not be read"):
        await source.segment(gone)
