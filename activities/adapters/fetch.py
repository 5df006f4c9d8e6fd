"""Reads strangers' addresses: hop by hop through the address guard, bounded in bytes, time and redirects.

No cookies, no proxy from the environment, no request log: an address may hold a secret. Every failure is one of the
three of `activities.ports`, in words for the person who pasted the address.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO

import httpcore
import httpx

from activities.adapters.guard import AddressGuard, PinnedBackend, parsed_url, redacted
from activities.adapters.inflate import Inflater
from activities.ports import SourceFault, SourceGone, SourceRefused
from kernel import in_thread

MAX_REDIRECTS = 5
MAX_SKIPPED_BYTES = 64 * 1024 * 1024  # read and thrown away where a server ignores a byte range
HEAD_BYTES = 1024
STALLED_S = 30.0  # without a byte of a long download
REDIRECTS = {301, 302, 303, 307, 308}

ByteRange = tuple[int, int]  # length, offset


class TooLarge(SourceRefused):
    """The answer is larger than what is taken. `head` is its beginning, for naming what it is."""

    def __init__(self, message: str, head: bytes, content_type: str) -> None:
        super().__init__(message)
        self.head = head
        self.content_type = content_type


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer: the final address after redirects, and the decoded body."""

    url: str
    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class _Answer:
    """An open answer whose body has not been read."""

    url: str
    response: httpcore.Response

    def header(self, name: bytes) -> str:
        values = [value for key, value in self.response.headers if key.lower() == name]
        return values[0].decode("latin-1") if values else ""


class Fetcher:
    """Reads addresses through the guard. Keeps connections for a short time; call `aclose` at the end."""

    def __init__(self, guard: AddressGuard, *, user_agent: str = "baton") -> None:
        self._user_agent = user_agent
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            network_backend=PinnedBackend(guard),
            max_connections=200,
            keepalive_expiry=15.0,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def fetch(
        self, url: str, *, limit_bytes: int, timeout_s: float, byte_range: ByteRange | None = None
    ) -> Fetched:
        """Read `url`, at most `limit_bytes` after decoding, in at most `timeout_s` with all its redirects.

        Raises SourceRefused (forbidden, too large), SourceGone (404, 410), SourceFault (all that may pass: time-outs,
        5xx, and 401 or 403 too, which live servers also use for "not now").
        """
        if byte_range and byte_range[0] > limit_bytes:
            raise SourceRefused(f"{redacted(url)} asks for a part of {byte_range[0]} bytes; at most {limit_bytes}.")
        async with _named(url, timeout_s), self._open(url, byte_range, timeout_s) as answer:
            _check_status(answer)
            body = await _read(answer, limit_bytes, byte_range)
            return Fetched(answer.url, answer.response.status, answer.header(b"content-type"), body)

    async def download(self, url: str, file: IO[bytes], *, limit_bytes: int, timeout_s: float) -> None:
        """Write the answer of `url` to a file, piece by piece; bounded and failing as `fetch` is."""
        async with _named(url, timeout_s), self._open(url, None, STALLED_S) as answer:
            _check_status(answer)
            async for piece in _decoded(answer, limit_bytes):
                await in_thread(file.write, piece)

    @asynccontextmanager
    async def _open(self, url: str, byte_range: ByteRange | None, timeout_s: float) -> AsyncIterator[_Answer]:
        """The first answer that is no redirect."""
        target = parsed_url(url)
        for _ in range(MAX_REDIRECTS + 1):
            async with self._pool.stream(
                "GET",
                _core_url(target),
                headers=self._headers(byte_range),
                extensions={"timeout": dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)},
            ) as response:
                answer = _Answer(str(target), response)
                location = answer.header(b"location")
                if response.status not in REDIRECTS or not location:
                    yield answer
                    return
            target = _next_hop(target, location)
        raise SourceRefused(f"{redacted(url)} redirects more than {MAX_REDIRECTS} times.")

    def _headers(self, byte_range: ByteRange | None) -> list[tuple[str, str]]:
        headers = [("User-Agent", self._user_agent), ("Accept", "*/*")]
        if byte_range is None:
            return [*headers, ("Accept-Encoding", "gzip")]
        length, offset = byte_range
        return [*headers, ("Accept-Encoding", "identity"), ("Range", f"bytes={offset}-{offset + length - 1}")]


@asynccontextmanager
async def _named(url: str, timeout_s: float) -> AsyncIterator[None]:
    """At most so long; what fails on the wire or takes too long is a SourceFault that names the address."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise SourceFault(f"{redacted(url)} did not answer within {timeout_s:g} s.") from error
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        raise SourceFault(f"{redacted(url)} could not be read ({_words(error)}).") from error


def _core_url(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)


def _next_hop(current: httpx.URL, location: str) -> httpx.URL:
    try:
        target = str(current.join(location))
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise SourceRefused(f"{redacted(str(current))} redirects to something that is no address.") from error
    try:
        return parsed_url(target)
    except SourceRefused as error:
        raise SourceRefused(f"{redacted(str(current))} redirects to a refused address. {error}") from error


def _check_status(answer: _Answer) -> None:
    status, where = answer.response.status, redacted(answer.url)
    if status in (200, 203, 206):
        return
    if status in (404, 410):
        raise SourceGone(f"{where} answered {status}: nothing is there.")
    if status in (401, 403):
        raise SourceFault(f"{where} answered {status}: it may not be read without permission.")
    raise SourceFault(f"{where} answered {status}.")


async def _read(answer: _Answer, limit_bytes: int, byte_range: ByteRange | None) -> bytes:
    if byte_range is None:
        return await _read_whole(answer, limit_bytes)
    length, offset = byte_range
    if answer.response.status == 206:
        _check_content_range(answer, offset)
        offset = 0
    return await _read_part(answer, length, offset)


async def _read_whole(answer: _Answer, limit_bytes: int) -> bytes:
    return b"".join([piece async for piece in _decoded(answer, limit_bytes)])


async def _decoded(answer: _Answer, limit_bytes: int) -> AsyncIterator[bytes]:
    """The decoded body piece by piece. Raises TooLarge, at once where the answer says so itself."""
    declared = answer.header(b"content-length")
    fits = not declared.isdigit() or int(declared) <= limit_bytes
    head, count, inflater = b"", 0, Inflater(answer.header(b"content-encoding"))
    room = limit_bytes if fits else HEAD_BYTES
    async for packed in answer.response.aiter_stream():
        piece = inflater.feed(packed, room + 1 - count)
        head, count = head + piece[: HEAD_BYTES - len(head)], count + len(piece)
        if count > room:
            message = f"{redacted(answer.url)} sends more than {limit_bytes} bytes."
            raise TooLarge(message, head, answer.header(b"content-type"))
        yield piece
    inflater.finish()


async def _read_part(answer: _Answer, length: int, skip: int) -> bytes:
    """`length` bytes after the first `skip`; reading stops there, so an answer without end is fine."""
    if skip > MAX_SKIPPED_BYTES:
        raise SourceRefused(f"{redacted(answer.url)} ignores byte ranges, and the part asked for lies too far in.")
    if answer.header(b"content-encoding").lower() not in ("", "identity"):
        raise SourceRefused(f"{redacted(answer.url)} packs its answer, so that no part can be taken out of it.")
    part, seen = bytearray(), 0
    async for piece in answer.response.aiter_stream():
        part += piece[max(0, skip - seen) :]
        seen += len(piece)
        if len(part) >= length:
            return bytes(part[:length])
    raise SourceFault(f"{redacted(answer.url)} sent {len(part)} of {length} bytes.")


def _check_content_range(answer: _Answer, offset: int) -> None:
    given = re.match(r"bytes (\d+)-", answer.header(b"content-range"))
    if given is None or int(given[1]) != offset:
        raise SourceFault(f"{redacted(answer.url)} answered with another part than the one asked for.")


def _words(error: Exception) -> str:
    """What went wrong on the wire; messages of the HTTP library name no query strings, but may be empty."""
    return str(error) or re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__).lower()
