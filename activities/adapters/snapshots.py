"""Turns a parsed media playlist into a `PlaylistSnapshot`. Pure; addresses come out absolute.

A list names hostile or broken things as it likes: counts, durations and sequence numbers are bounded here, the
addresses are checked where they are read.
"""

import re
from typing import Any
from urllib.parse import urljoin

from activities.adapters.keys import choose_key
from activities.payloads import MediaSegment, PlaylistSnapshot
from activities.ports import SourceFault, SourceRefused

MAX_SEGMENTS = 20_000
MAX_SEGMENT_S = 600.0
MAX_SEQUENCE = 1 << 53
MAX_TITLE = 200
_RANGE = re.compile(r"(\d+)(?:@(\d+))?$")

Range = tuple[int, int]  # length, offset


def snapshot(data: dict[str, Any], url: str) -> PlaylistSnapshot:
    """One reading of the media playlist at `url` (its final address).

    Segments marked as gaps, and parts of a segment that is not whole yet, are left out: their numbers stay free.
    """
    count, first = len(data["segments"]), data.get("media_sequence") or 0
    if count > MAX_SEGMENTS:
        raise SourceRefused(f"The playlist names {count} segments; at most {MAX_SEGMENTS} are read.")
    if not 0 <= first < MAX_SEQUENCE:
        raise SourceFault(f"The playlist begins at sequence {first}, which is no sequence number.")
    segments = _segments(data["segments"], first, url)
    longest = max((s.duration_s for s in segments), default=0.0)
    return PlaylistSnapshot(
        media_url=url,
        target_duration_s=min(data.get("targetduration") or longest or 6.0, MAX_SEGMENT_S),
        segments=segments,
        ended=bool(data["is_endlist"]),
        title=title_of(data),
    )


def _segments(entries: list[dict[str, Any]], first: int, url: str) -> list[MediaSegment]:
    segments, ends = [], {}
    discontinuity = False
    for sequence, entry in enumerate(entries, first):
        discontinuity = discontinuity or bool(entry.get("discontinuity"))
        if not entry.get("uri"):
            continue
        part = _next_range(entry, ends)
        if not entry.get("gap_tag"):
            segments.append(_segment(entry, sequence, url, part, discontinuity))
            discontinuity = False
    return segments


def _segment(entry: dict[str, Any], sequence: int, url: str, part: Range | None, discontinuity: bool) -> MediaSegment:
    key = choose_key(entry.get("key") or [], sequence)
    head = entry.get("init_section") or {}
    return MediaSegment(
        sequence=sequence,
        url=urljoin(url, entry["uri"]),
        duration_s=min(entry.get("duration", 0.0), MAX_SEGMENT_S),
        byte_range=part,
        map_url=urljoin(url, head["uri"]) if head.get("uri") else None,
        map_range=_range(head["byterange"], 0) if head.get("byterange") else None,
        key_url=urljoin(url, key[0]) if key else None,
        key_iv=key[1] if key else None,
        discontinuity=discontinuity,
    )


def _next_range(entry: dict[str, Any], ends: dict[str, int]) -> Range | None:
    """The segment's byte range; without an offset it begins where the file's previous one ended."""
    if not entry.get("byterange"):
        return None
    part = _range(entry["byterange"], ends.get(entry["uri"], 0))
    ends[entry["uri"]] = sum(part)
    return part


def _range(text: str, default_offset: int) -> Range:
    found = _RANGE.match(text.strip().strip('"'))
    if found is None or not 0 < int(found[1]) < MAX_SEQUENCE:
        raise SourceFault(f"The playlist names the byte range {text[:40]!r}, which is none.")
    offset = int(found[2]) if found[2] else default_offset
    if offset >= MAX_SEQUENCE:
        raise SourceFault(f"The playlist names the byte range {text[:40]!r}, which is none.")
    return int(found[1]), offset


def title_of(data: dict[str, Any]) -> str | None:
    """The title that a master or media playlist gives itself, on one line, or None."""
    named = [e.get("value") for e in data["session_data"] if str(e.get("data_id", "")).endswith("title")]
    for text in (*named, data.get("name")):
        line = " ".join("".join(c if c.isprintable() else " " for c in text or "").split())
        if line:
            return line[:MAX_TITLE]
    return None
