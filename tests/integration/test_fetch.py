"""The guarded fetcher against a scripted server: redirects, bounds, ranges, and what each failure is called."""

import asyncio
import gzip
import ssl
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from activities.adapters.fetch import Fetcher, TooLarge
from activities.adapters.guard import AddressGuard
from activities.ports import SourceFault, SourceGone, SourceRefused
from tests.servers import Cut, Reply, ScriptedServer, ranged, redirect
from tests.unit.test_address_guard import HOSTILE


@pytest.fixture
async def origin():
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def private():
    """A listener that must never be contacted."""
    async with ScriptedServer() as server:
        yield server
        assert server.connections == 0


@pytest.fixture
async def fetcher(origin: ScriptedServer):
    opened = Fetcher(AddressGuard([origin.place]))
    yield opened
    await opened.aclose()


async def fetch(fetcher: Fetcher, url: str, limit: int = 10_000, seconds: float = 5.0, part=None):
    return await fetcher.fetch(url, limit_bytes=limit, timeout_s=seconds, byte_range=part)


async def test_redirects_are_followed_and_the_final_address_is_told(fetcher, origin) -> None:
    origin.on("/a", redirect("/b/c?x=1", 301))
    origin.on("/b/c", redirect("d%20e?y=ü", 307))
    origin.on("/b/d%20e", Reply(b"here", headers={"Content-Type": "text/plain"}))
    answer = await fetch(fetcher, f"{origin.url}/a")
    assert (answer.body, answer.content_type) == (b"here", "text/plain")
    assert answer.url == f"{origin.url}/b/d%20e?y=%C3%BC"
    assert "cookie" not in origin.requests[-1].headers


async def test_five_redirects_are_followed_and_no_sixth(fetcher, origin) -> None:
    for hop in range(6):
        origin.on(f"/{hop}", redirect(f"/{hop + 1}"))
    origin.on("/5", Reply(b"end"))
    assert (await fetch(fetcher, f"{origin.url}/0")).body == b"end"
    origin.on("/5", redirect("/0"))
    with pytest.raises(SourceRefused, match="more than 5 times"):
        await fetch(fetcher, f"{origin.url}/0")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_a_private_address_reaches_nobody(fetcher, origin, private, status: int) -> None:
    for target in (f"{private.url}/x", f"//{private.place}/x", f"http://localhost:{private.port}/x"):
        origin.on("/a", redirect(target, status))
        with pytest.raises(SourceRefused):
            await fetch(fetcher, f"{origin.url}/a")


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.org/", "http://u:p@127.0.0.1/", "http://[::"])
async def test_a_redirect_to_what_is_no_web_address_is_refused(fetcher, origin, target: str) -> None:
    origin.on("/a", redirect(target))
    with pytest.raises(SourceRefused, match="redirects to"):
        await fetch(fetcher, f"{origin.url}/a")


SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.1",
    "[::ffff:127.0.0.1]",
    "localhost",
    "0",
]


async def test_none_of_the_hostile_addresses_reaches_the_listener_behind_them(fetcher, origin, private) -> None:
    addresses = [*HOSTILE, *(f"http://{host}:{private.port}/live.m3u8" for host in SPELLINGS)]
    assert len(set(addresses)) >= 80
    for address in addresses:
        with pytest.raises(SourceRefused):
            await fetch(fetcher, address)
        if address.isprintable():  # a header could hold no other
            origin.on("/go", redirect(address.replace(" ", "%20")))
            with pytest.raises((SourceRefused, SourceFault, SourceGone)):
                await fetch(fetcher, f"{origin.url}/go", seconds=2.0)
    assert private.connections == 0


async def test_proxies_of_the_environment_are_not_used(origin, private, monkeypatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", private.url)
    monkeypatch.setenv("ALL_PROXY", private.url)
    origin.on("/a", Reply(b"direct"))
    fetcher = Fetcher(AddressGuard([origin.place]))
    assert (await fetch(fetcher, f"{origin.url}/a")).body == b"direct"
    await fetcher.aclose()


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, SourceGone), (410, SourceGone)]
    + [(status, SourceFault) for status in (204, 304, 400, 401, 403, 408, 429, 500, 502, 503)],
)
async def test_each_status_has_its_kind_and_a_message_without_secrets(fetcher, origin, status: int, kind) -> None:
    origin.on("/a", Reply(status=status))
    with pytest.raises(kind, match=str(status)) as caught:
        await fetch(fetcher, f"{origin.url}/a?token=s3cret")
    assert "s3cret" not in str(caught.value)


async def test_a_body_over_the_limit_is_refused_with_its_beginning(fetcher, origin) -> None:
    origin.on("/told", Reply(b"ID3" + bytes(20_000)))
    origin.on("/endless", Reply(parts=[b"ID3" + bytes(6_000)] * 5))
    for path in ("/told", "/endless"):
        with pytest.raises(TooLarge, match="more than 10000 bytes") as caught:
            await fetch(fetcher, origin.url + path)
        assert caught.value.head.startswith(b"ID3")


async def test_packed_answers_are_unpacked_within_the_limit(fetcher, origin) -> None:
    origin.on("/gzip", Reply(gzip.compress(b"a" * 9_000), headers={"Content-Encoding": "gzip"}))
    origin.on("/bomb", Reply(gzip.compress(bytes(50_000_000)), headers={"Content-Encoding": "gzip"}))
    origin.on("/deflate", Reply(zlib.compress(b"b" * 9_000), headers={"Content-Encoding": "deflate"}))
    assert (await fetch(fetcher, f"{origin.url}/gzip")).body == b"a" * 9_000
    assert (await fetch(fetcher, f"{origin.url}/deflate")).body == b"b" * 9_000
    with pytest.raises(TooLarge):
        await fetch(fetcher, f"{origin.url}/bomb", limit=100_000)


async def test_broken_or_unasked_packing_is_named(fetcher, origin) -> None:
    origin.on("/short", Reply(gzip.compress(b"a" * 900)[:-12], headers={"Content-Encoding": "gzip"}))
    origin.on("/false", Reply(b"not packed", headers={"Content-Encoding": "gzip"}))
    origin.on("/br", Reply(b"xyz", headers={"Content-Encoding": "br"}))
    with pytest.raises(SourceFault, match="broke off"):
        await fetch(fetcher, f"{origin.url}/short")
    with pytest.raises(SourceFault, match="packed wrongly"):
        await fetch(fetcher, f"{origin.url}/false")
    with pytest.raises(SourceRefused, match="'br'"):
        await fetch(fetcher, f"{origin.url}/br")


async def test_a_byte_range_is_read_from_servers_that_honour_it_and_from_those_that_do_not(fetcher, origin) -> None:
    content = bytes(range(256)) * 40
    origin.on("/honours", ranged(content))
    origin.on("/ignores", Reply(content))
    for path in ("/honours", "/ignores"):
        assert (await fetch(fetcher, origin.url + path, part=(100, 5_000))).body == content[5_000:5_100]
    assert origin.requests[0].headers["range"] == "bytes=5000-5099"


async def test_a_range_that_is_short_or_another_one_is_a_fault(fetcher, origin) -> None:
    origin.on("/short", ranged(bytes(50)))
    origin.on("/other", Reply(bytes(100), status=206, headers={"Content-Range": "bytes 0-99/500"}))
    with pytest.raises(SourceFault, match="10 of 100 bytes"):
        await fetch(fetcher, f"{origin.url}/short", part=(100, 40))
    with pytest.raises(SourceFault, match="another part"):
        await fetch(fetcher, f"{origin.url}/other", part=(100, 40))


async def test_a_range_larger_than_the_limit_is_refused_before_anything_is_sent(fetcher, origin) -> None:
    with pytest.raises(SourceRefused):
        await fetch(fetcher, f"{origin.url}/a", limit=50, part=(100, 0))
    assert origin.requests == []


async def test_a_broken_connection_or_answer_is_a_fault(fetcher, origin) -> None:
    origin.on("/cut", Reply(parts=[b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc", Cut], raw=True))
    origin.on("/noise", Reply(parts=[b"SSH-2.0-OpenSSH\r\n\r\n"], raw=True))
    for path in ("/cut", "/noise"):
        with pytest.raises(SourceFault, match="could not be read"):
            await fetch(fetcher, origin.url + path)


async def test_an_answer_that_does_not_come_is_a_fault_within_the_whole_time(fetcher, origin) -> None:
    origin.on("/slow", Reply(parts=[b"x", asyncio.Event()]))
    with pytest.raises(SourceFault, match=r"within 0\.2 s"):
        await fetch(fetcher, f"{origin.url}/slow", seconds=0.2)


async def test_a_closed_port_is_a_fault() -> None:
    async with ScriptedServer() as server:
        place, url = server.place, server.url
    fetcher = Fetcher(AddressGuard([place]))
    with pytest.raises(SourceFault, match="could not be read"):
        await fetch(fetcher, f"{url}/a")
    await fetcher.aclose()


async def test_tls_asks_for_and_verifies_the_name_although_the_connection_goes_to_an_address(tmp_path: Path) -> None:
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path, "stream.example"))
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    fetcher = Fetcher(AddressGuard([f"stream.example:{port}"], resolve=resolve))
    with pytest.raises(SourceFault, match="certificate"):
        await fetch(fetcher, f"https://stream.example:{port}/a")
    await fetcher.aclose()
    server.close()
    await server.wait_closed()
    assert names == ["stream.example"]


def self_signed(folder: Path, name: str) -> Path:
    """A certificate that nobody trusts, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    certificate = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
    return file
