"""Reads playlist text with the `m3u8` parser, and takes over the tags that it reads too strictly or too simply.

Real lists carry fractional target durations, broken dates, titles in odd places and several keys for one segment;
none of that may end a recording.
"""

import math
import re
from typing import Any

import m3u8

from activities.ports import SourceFault

ATTRIBUTE = re.compile(r'([A-Za-z0-9-]+)\s*=\s*("[^"]*"|[^,]*)')
NO_LINE_END = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")  # the parser would split lines there; HLS does not
NUMBER = re.compile(r"\s*(\d+(?:\.\d*)?)")

Playlist = dict[str, Any]


def parse_playlist(text: str) -> Playlist:
    """The tags of a playlist as the parser's mapping. Each segment's "key" is a list of attribute mappings.

    Raises SourceFault for a list so malformed that it says nothing; the next reading may be better.
    """
    try:
        data = m3u8.parse(NO_LINE_END.sub(" ", text.lstrip("\ufeff")), custom_tags_parser=_LenientTags())
    except Exception as error:  # the parser raises whatever a broken tag leads to
        raise SourceFault(f"The playlist is malformed ({type(error).__name__}: {error}).") from error
    return data


def attributes(line: str) -> dict[str, str]:
    """`NAME="value",OTHER=value` after the tag's colon, names in lower case with underscores."""
    pairs = ATTRIBUTE.findall(line.partition(":")[2])
    return {name.lower().replace("-", "_"): value.strip().strip('"') for name, value in pairs}


def seconds(text: str) -> float:
    """The number that `text` begins with, 0 without one."""
    number = NUMBER.match(text)
    value = float(number[1]) if number else 0.0
    return value if math.isfinite(value) else 0.0


class _LenientTags:
    """Called by the parser for each tag; True means the tag has been dealt with."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[str, str]] = {}

    def __call__(self, line: str, lineno: int, data: Playlist, state: dict[str, Any]) -> bool:
        tag, _, value = line.partition(":")
        match tag:
            case "#EXTINF":
                self._segment(value, state)
            case "#EXT-X-TARGETDURATION":
                data["targetduration"] = seconds(value)
            case "#EXT-X-KEY":
                self._key(line, state)
            case "#PLAYLIST":
                data["name"] = value
            case "#EXT-X-PROGRAM-DATE-TIME" | "#EXT-X-DATERANGE" | "#EXT-X-SERVER-CONTROL" | "#EXT-X-START":
                pass  # nothing here depends on them, and broken dates are common
            case _:
                return tag.startswith("#EXT-X-CUE") or tag.startswith("#EXT-OATCLS")
        return True

    def _segment(self, value: str, state: dict[str, Any]) -> None:
        segment = state.setdefault("segment", {})
        segment["duration"] = seconds(value)
        segment["title"] = value.partition(",")[2]
        state["expect_segment"] = True

    def _key(self, line: str, state: dict[str, Any]) -> None:
        """One key per format is in force at a time, until NONE takes all away."""
        key = attributes(line)
        if key.get("method", "").upper() == "NONE":
            self._keys = {}
        else:
            self._keys = {**self._keys, key.get("keyformat", "identity").lower(): key}
        state["current_key"] = list(self._keys.values())
