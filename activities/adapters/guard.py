"""The address guard: what strangers' addresses may look like, and which hosts may be contacted for them.

A host is resolved here, every address it has is checked, and the connection goes to a checked address: between the
check and the use no name is looked up again. TLS still verifies the host name.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import httpcore
import httpx

from activities.adapters.addresses import forbidden
from activities.ports import SourceFault, SourceRefused

MAX_URL_LENGTH = 4096
DEFAULT_PORTS = {"http": 80, "https": 443}

# Threads of their own: a slow name server must not hold up other work in threads.
_LOOKUPS = ThreadPoolExecutor(max_workers=16, thread_name_prefix="resolve")

Resolve = Callable[[str, int], Awaitable[list[str]]]


def redacted(url: str) -> str:
    """The address without credentials, query and fragment, any of which may be a secret. For messages and logs."""
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2] + parts.path
    except ValueError:
        return "(an unreadable address)"
    return f"{parts.scheme}://{place[:200]}" + ("?…" if parts.query else "")


def parsed_url(url: str) -> httpx.URL:
    """The address in its normal form. Raises SourceRefused with a plain reason where its form is not accepted."""
    if len(url) > MAX_URL_LENGTH:
        raise SourceRefused(f"The address has {len(url)} characters; at most {MAX_URL_LENGTH} are accepted.")
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise SourceRefused(f"This is not a web address: {error}.") from error
    _check_form(parsed)
    return parsed.copy_with(fragment=None)


def check_url(url: str) -> None:
    """Check the form of an address: http or https, a host, no name and password, a real port. Raises SourceRefused."""
    parsed_url(url)


def _check_form(url: httpx.URL) -> None:
    if url.scheme not in DEFAULT_PORTS:
        scheme = f" {url.scheme!r} is not read." if url.scheme else ""
        raise SourceRefused(f"An address begins with http:// or https://.{scheme}")
    if url.userinfo:
        raise SourceRefused("The address holds a name or password before its host; remove that part.")
    if not url.host:
        raise SourceRefused("The address names no host.")
    if any(mark in url.host for mark in "%\\ ") or len(url.host) > 253:
        raise SourceRefused(f"{url.host[:80]!r} is not a host name.")
    if url.port is not None and not 0 < url.port < 65536:
        raise SourceRefused(f"{url.port} is not a port; ports go from 1 to 65535.")


async def resolve_host(host: str, port: int) -> list[str]:
    """All numeric addresses of a host, as the system's resolver gives them. Raises OSError."""
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_LOOKUPS, look_up)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class AddressGuard:
    """Decides which hosts may be contacted. `allow_hosts`: `host:port` pairs that may be private."""

    def __init__(self, allow_hosts: Iterable[str] = (), *, resolve: Resolve = resolve_host) -> None:
        self._allowed = {pair.strip().lower() for pair in allow_hosts if pair.strip()}
        self._resolve = resolve

    async def check(self, url: str) -> None:
        """Check an address and where its host leads. Raises SourceRefused, or SourceFault where it leads nowhere."""
        parsed = parsed_url(url)
        await self.admitted(parsed.raw_host.decode("ascii"), parsed.port or DEFAULT_PORTS[parsed.scheme])

    async def admitted(self, host: str, port: int) -> list[str]:
        """The addresses under which `host` may be contacted: all it has, each checked."""
        addresses = await self._addresses(host, port)
        if not self._is_allowed(host, port):
            for address in addresses:
                if kind := forbidden(address):  # which address is not told: strangers could map our network with it
                    raise SourceRefused(f"{host} leads to {kind}; only public hosts may be read.")
        return addresses

    def _is_allowed(self, host: str, port: int) -> bool:
        name = f"[{host}]" if ":" in host else host
        return f"{name.lower()}:{port}" in self._allowed

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise SourceFault(f"The host {host} could not be found ({_plain(error)}).") from error
        if not addresses:
            raise SourceFault(f"The host {host} has no address.")
        return addresses


def _plain(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to the addresses that the guard has checked, and to nothing else."""

    def __init__(self, guard: AddressGuard, sockets: httpcore.AsyncNetworkBackend | None = None) -> None:
        self._guard = guard
        self._sockets = sockets or cast(httpcore.AsyncNetworkBackend, httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first checked address that answers; each has `timeout` seconds."""
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in await self._guard.admitted(host, port):
            try:
                return await self._sockets.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Never: a local socket is no public host."""
        raise SourceRefused("Local sockets may not be read.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
