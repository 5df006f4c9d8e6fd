"""Chooses among the renditions of a master playlist: the one with the audio, and as little else as can be.

Pure. The order is: the default rendition of an audio group; audio-only variants; variants that may carry audio; the
rest. Lighter ones come first.
"""

from typing import Any
from urllib.parse import urljoin

MAX_CANDIDATES = 4
_AUDIO_CODECS = ("mp4a", "opus", "ac-3", "ec-3", "ac-4", "flac", "mp3", "vorbis", "alac")
_TEXT_CODECS = ("stpp", "wvtt")


def is_master(data: dict[str, Any]) -> bool:
    """Whether this list names other lists instead of segments."""
    return bool(data["playlists"]) or (bool(data["media"]) and not data["segments"])


def candidates(data: dict[str, Any], url: str) -> list[str]:
    """Addresses of the media playlists worth reading, best first. `url`: the final address of the master."""
    variants = sorted(data["playlists"], key=_bandwidth)
    groups = dict.fromkeys([_info(v).get("audio") for v in variants] + [m.get("group_id") for m in data["media"]])
    defaults = [_default_of(group, data["media"]) for group in groups if group is not None]
    ranked = sorted(variants, key=_rank)  # stable: lighter ones stay first
    found = [d["uri"] for d in defaults if d and d.get("uri")] + [v["uri"] for v in ranked]
    return list(dict.fromkeys(urljoin(url, uri) for uri in found))[:MAX_CANDIDATES]


def _default_of(group: str, media: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The rendition that a player would start with. One without an address is inside the variants."""
    members = [m for m in media if m.get("type", "").upper() == "AUDIO" and m.get("group_id") == group]
    return min(members, key=_preference, default=None)


def _preference(rendition: dict[str, Any]) -> tuple[bool, bool, bool]:
    describes_video = "describes-video" in (rendition.get("characteristics") or "")
    return describes_video, rendition.get("default") != "YES", rendition.get("autoselect") != "YES"


def _info(variant: dict[str, Any]) -> dict[str, Any]:
    return variant.get("stream_info") or {}


def _bandwidth(variant: dict[str, Any]) -> int:
    return _info(variant).get("bandwidth") or 1 << 40


def _rank(variant: dict[str, Any]) -> int:
    """0 audio only, 1 may carry audio, 2 certainly none."""
    codecs = [c.strip().lower() for c in (_info(variant).get("codecs") or "").split(",") if c.strip()]
    spoken = [c for c in codecs if c.startswith(_AUDIO_CODECS)]
    seen = [c for c in codecs if not c.startswith(_AUDIO_CODECS + _TEXT_CODECS)]
    if spoken and not seen and "resolution" not in _info(variant):
        return 0
    return 1 if spoken or not codecs else 2
