"""The address guard: form of an address, ranges of its host, and what a connection goes to."""

import httpcore
import pytest

from activities.adapters.addresses import forbidden
from activities.adapters.guard import AddressGuard, PinnedBackend, check_url, redacted
from activities.ports import SourceFault, SourceRefused

PRIVATE_LITERALS = [
    "http://127.0.0.1/",
    "http://127.0.0.1:27017/",
    "http://127.1/",
    "http://127.255.255.254/",
    "http://0.0.0.0/",
    "http://0/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.1/",
    "http://017700000001/",
    "http://127。0。0。1/",
    "http://10.0.0.8/live.m3u8",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.170.2/",
    "http://100.100.100.200/",
    "http://100.64.0.1/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://192.88.99.1/",
    "http://192.0.2.1/",
    "http://203.0.113.9/",
    "http://224.0.0.1/",
    "http://239.255.255.250:1900/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]:8000/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::1]/",
    "http://[2001:0:7f00:1::1]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[2606:4700::5efe:a00:1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[5f00::1]/",
    "http://[100::1]/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://127.0.1/",
    "http://[::ffff:10.0.0.8]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[fe80::a9fe:a9fe]/",
]

BAD_FORMS = [
    "",
    "stream",
    "//host/live.m3u8",
    "ftp://example.org/a",
    "file:///etc/passwd",
    "data:application/x-mpegurl,#EXTM3U",
    "gopher://example.org/",
    "javascript:alert(1)",
    "hls+http://example.org/",
    "http://",
    "http:///live.m3u8",
    "http://user:word@example.org/",
    "http://user@example.org/",
    "http://example.org\\@10.0.0.1/",
    "http://example.org:0/",
    "http://example.org:65536/",
    "http://example.org:http/",
    "http://exa%6dple.org/",
    "http://[fe80::1%25eth0]/",
    "http://[::1/",
    "http://0177.0.0.1/",
    "http://example.org/\r\nHost: inside",
    "http://example .org/",
    "http://ⓛocalhost/",
    "http://" + "a" * 300 + ".org/",
    "http://example.org/" + "a" * 5000,
    "http:/\\10.0.0.1/",
    "https://[::ffff:127.0.0.1]@example.org/",
    "http://\u0000/",
    "http://127.0.0.1%2f@example.org/",
]

HOSTILE = [*PRIVATE_LITERALS, *BAD_FORMS]

PUBLIC = ["93.184.215.14", "8.8.8.8", "172.32.0.1", "2606:4700::1111", "2a00:1450:4001:82a::200e", "64:ff9b::808:808"]


def resolving_to(*addresses: str):
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


@pytest.mark.parametrize("url", PRIVATE_LITERALS)
async def test_an_address_that_is_not_public_is_refused_however_it_is_written(url: str) -> None:
    with pytest.raises(SourceRefused, match="leads to"):
        await AddressGuard().check(url)


@pytest.mark.parametrize("url", BAD_FORMS)
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(SourceRefused):
        check_url(url)


@pytest.mark.parametrize(
    "url", ["http://example.org/a b/ü.m3u8?t=1%2F2#x", "https://例え.jp:8443/", "http://[2606:4700::1]/"]
)
def test_a_plain_web_address_is_accepted(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_not_forbidden(address: str) -> None:
    assert forbidden(address) is None


@pytest.mark.parametrize("address", ["fe80::1%eth0", "2606:4700::1%eth0", "localhost", ""])
def test_what_names_an_interface_or_nothing_is_forbidden(address: str) -> None:
    assert forbidden(address)


async def test_one_private_address_among_public_ones_refuses_the_host() -> None:
    guard = AddressGuard(resolve=resolving_to("93.184.215.14", "10.1.2.3"))
    with pytest.raises(SourceRefused, match=r"example\.org leads to a private address") as caught:
        await guard.check("https://example.org/live.m3u8")
    assert "10.1.2.3" not in str(caught.value)


async def test_a_host_without_address_is_a_fault_and_not_a_refusal() -> None:
    async def failing(host: str, port: int) -> list[str]:
        raise OSError(-2, "Name or service not known")

    for resolve in (failing, resolving_to()):
        with pytest.raises(SourceFault, match=r"nowhere\.example"):
            await AddressGuard(resolve=resolve).check("http://nowhere.example/")


async def test_a_listed_pair_may_be_private_but_no_other_port_of_its_host() -> None:
    guard = AddressGuard(["127.0.0.1:8700", "[::1]:8700"])
    await guard.check("http://127.0.0.1:8700/live.m3u8")
    await guard.check("http://[::1]:8700/live.m3u8")
    for url in ("http://127.0.0.1:8701/", "http://127.0.0.1/", "http://127.0.0.2:8700/", "http://localhost:8700/"):
        with pytest.raises(SourceRefused):
            await guard.check(url)


async def test_a_name_that_changes_between_check_and_use_is_checked_again_and_never_contacted() -> None:
    answers = [["93.184.215.14"], ["127.0.0.1"]]

    async def rebinding(host: str, port: int) -> list[str]:
        return answers.pop(0)

    guard = AddressGuard(resolve=rebinding)
    await guard.check("http://example.org/")
    with pytest.raises(SourceRefused, match="loopback"):
        await PinnedBackend(guard).connect_tcp("example.org", 80)


async def test_a_connection_goes_to_the_checked_address_and_no_name_is_looked_up_again() -> None:
    class Sockets(httpcore.AsyncMockBackend):
        contacted: list[str] = []  # noqa: RUF012 - one instance

        async def connect_tcp(self, host, port, *args, **kwargs):
            self.contacted.append(host)
            if len(self.contacted) == 1:
                raise httpcore.ConnectError("no route")
            return await super().connect_tcp(host, port)

    guard = AddressGuard(resolve=resolving_to("2606:4700::1111", "93.184.215.14"))
    sockets = Sockets([])
    await PinnedBackend(guard, sockets).connect_tcp("example.org", 443)
    assert sockets.contacted == ["2606:4700::1111", "93.184.215.14"]


async def test_local_sockets_are_never_opened() -> None:
    with pytest.raises(SourceRefused):
        await PinnedBackend(AddressGuard()).connect_unix_socket("/run/some.sock")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pw@host.example/live/a.m3u8?token=s3cret#x", "https://host.example/live/a.m3u8?…"),
        ("http://host.example:81/a", "http://host.example:81/a"),
        ("http://[broken", "(an unreadable address)"),
    ],
)
def test_messages_show_an_address_without_its_secrets(url: str, shown: str) -> None:
    assert redacted(url) == shown
