"""HLS as a `LiveSource`: playlists, segments, keys and init sections, all read through the address guard."""

import time
from collections import OrderedDict

import msgspec

from activities.adapters.fetch import ByteRange, Fetched, Fetcher, TooLarge
from activities.adapters.guard import redacted
from activities.adapters.keys import decrypt
from activities.adapters.playlist_tags import Playlist, parse_playlist
from activities.adapters.renditions import candidates, is_master
from activities.adapters.snapshots import snapshot, title_of
from activities.adapters.sniff import found, is_media
from activities.payloads import MediaSegment, PlaylistSnapshot
from activities.ports import FileFound, SourceFault, SourceGone, SourceRefused
from kernel import in_thread

MAX_PLAYLIST_BYTES = 8 * 1024 * 1024
MAX_SEGMENT_BYTES = 15 * 1024 * 1024  # a stored segment is one document, which may have 16 MiB
MAX_INIT_BYTES = 1024 * 1024
PLAYLIST_TIMEOUT_S = 10.0
SEGMENT_TIMEOUT_S = 30.0
MAX_MASTERS = 2  # a master may lead to another one, not further

SOURCE_ERRORS = (SourceGone, SourceFault, SourceRefused)


class _Recent:
    """A few small parts (keys, init sections) kept for a short time: an encoder that restarts reuses addresses."""

    def __init__(self, size: int = 32, keep_s: float = 30.0) -> None:
        self._size, self._keep_s = size, keep_s
        self._parts: OrderedDict[tuple, tuple[float, bytes]] = OrderedDict()

    def get(self, place: tuple) -> bytes | None:
        until, part = self._parts.get(place, (0.0, b""))
        return part if time.monotonic() < until else None

    def put(self, place: tuple, part: bytes) -> None:
        self._parts[place] = (time.monotonic() + self._keep_s, part)
        self._parts.move_to_end(place)
        while len(self._parts) > self._size:
            self._parts.popitem(last=False)


class HlsSource:
    """Reads HLS. Keeps nothing between calls but a few keys and init sections."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._recent = _Recent()

    async def playlist(self, url: str) -> PlaylistSnapshot:
        """Read the media playlist at `url`; a master playlist is followed to its best audio."""
        return await self._playlist(url, MAX_MASTERS)

    async def segment(self, segment: MediaSegment) -> bytes:
        """The decrypted bytes of a segment, its init section in front where it has one."""
        data = await self._part(segment.url, segment.byte_range, MAX_SEGMENT_BYTES, "segment")
        key = await self._key(segment)
        if key is not None:
            data = await in_thread(decrypt, data, key, segment.key_iv)
        if not data:
            raise SourceFault(f"The segment at {redacted(segment.url)} is empty.")
        whole = await self._init_section(segment, key) + data
        if len(whole) > MAX_SEGMENT_BYTES:
            raise SourceRefused(f"A segment has {len(whole)} bytes; at most {MAX_SEGMENT_BYTES} are taken.")
        return whole

    async def _playlist(self, url: str, masters: int) -> PlaylistSnapshot:
        page = await self._page(url)
        data = await in_thread(parse_playlist, page.body.decode("utf-8", "replace"))
        if not is_master(data):
            return snapshot(data, page.url)
        if masters == 0:
            raise SourceRefused(f"{redacted(url)} leads from one master playlist to the next.")
        media = await self._first_readable(data, page.url, masters)
        return media if media.title else msgspec.structs.replace(media, title=title_of(data))

    async def _first_readable(self, data: Playlist, url: str, masters: int) -> PlaylistSnapshot:
        """The best rendition that can be read. None can: what was wrong with the best of all."""
        first: Exception = SourceRefused(f"{redacted(url)} names no rendition that could be read.")
        for number, candidate in enumerate(candidates(data, url)):
            try:
                return await self._playlist(candidate, masters - 1)
            except SOURCE_ERRORS as error:
                first = first if number else error
        raise first

    async def _page(self, url: str) -> Fetched:
        """The answer at `url`, once it is a playlist."""
        try:
            page = await self._fetcher.fetch(url, limit_bytes=MAX_PLAYLIST_BYTES, timeout_s=PLAYLIST_TIMEOUT_S)
        except TooLarge as error:
            if _is_playlist(error.head):
                raise
            raise _no_playlist(url, error.head, error.content_type) from error
        if not page.body.strip():
            raise SourceFault(f"{redacted(url)} answered with nothing.")
        if not _is_playlist(page.body):
            raise _no_playlist(url, page.body, page.content_type)
        return page

    async def _part(self, url: str, part: ByteRange | None, limit: int, name: str) -> bytes:
        """Bytes that a playlist points to, with what they were for in the message of a failure."""
        try:
            answer = await self._fetcher.fetch(url, limit_bytes=limit, timeout_s=SEGMENT_TIMEOUT_S, byte_range=part)
        except SOURCE_ERRORS as error:
            kind = SourceRefused if isinstance(error, SourceRefused) else type(error)
            raise kind(f"A {name} could not be read: {error}") from error
        return answer.body

    async def _kept(self, url: str, part: ByteRange | None, limit: int, name: str) -> bytes:
        place = (url, part)
        kept = self._recent.get(place)
        if kept is None:
            kept = await self._part(url, part, limit, name)
            self._recent.put(place, kept)
        return kept

    async def _key(self, segment: MediaSegment) -> bytes | None:
        if segment.key_url is None:
            return None
        return await self._kept(segment.key_url, None, MAX_INIT_BYTES, "key")

    async def _init_section(self, segment: MediaSegment, key: bytes | None) -> bytes:
        if segment.map_url is None:
            return b""
        section = await self._kept(segment.map_url, segment.map_range, MAX_INIT_BYTES, "init section")
        if key is None or section[4:8] in (b"ftyp", b"moov"):
            return section
        return decrypt(section, key, segment.key_iv or "")


def _is_playlist(body: bytes) -> bool:
    return body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"#EXTM3U")


def _no_playlist(url: str, head: bytes, content_type: str) -> SourceRefused:
    kind = found(head, content_type)
    return (FileFound if is_media(kind) else SourceRefused)(
        f"{redacted(url)} is {kind}, not an HLS playlist. "
        "Paste the address of the stream's playlist, which often ends in .m3u8."
    )
