"""Names what an address answered with when it is no playlist, so that the person can be told."""

_MAGIC = [
    (b"ID3", "an MP3 file"),
    (b"OggS", "an Ogg file"),
    (b"fLaC", "a FLAC file"),
    (b"RIFF", "a WAV or AVI file"),
    (b"\x1aE\xdf\xa3", "a WebM or Matroska file"),
    (b"FLV", "an FLV file"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"[playlist]", "a PLS playlist"),
]
_TS_PACKET = 188
_HEARD = {
    "an MP3 file",
    "an Ogg file",
    "a FLAC file",
    "a WAV or AVI file",
    "a WebM or Matroska file",
    "an MP4 file",
    "an AAC file",
    "an MPEG transport stream",
}


def is_media(kind: str) -> bool:
    """Whether what `found` named may hold sound that can be heard."""
    return kind in _HEARD or kind.startswith("a media file")


def found(head: bytes, content_type: str = "") -> str:
    """What `head`, the beginning of an answer, is: "a web page (HTML)", "an MP3 file", "something else (text/csv)"."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    return _binary(head) or _markup(head) or _by_type(content_type)


def _binary(head: bytes) -> str | None:
    if head[4:8] in (b"ftyp", b"styp", b"moov"):
        return "an MP4 file"
    if head[:1] == b"G" and head[_TS_PACKET : _TS_PACKET + 1] in (b"G", b""):
        return "an MPEG transport stream"
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        return "an AAC file" if head[1] & 0x06 == 0 else "an MP3 file"
    return None


def _markup(head: bytes) -> str | None:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:512].lower()
    if b"<mpd" in text:
        return "a DASH manifest"
    if b"<smoothstreamingmedia" in text:
        return "a Smooth Streaming manifest"
    if b"<html" in text or text.startswith((b"<!doctype html", b"<head", b"<body")):
        return "a web page (HTML)"
    if text.startswith((b"{", b"[")):
        return "a JSON document"
    return "an XML document" if text.startswith(b"<?xml") else None


def _by_type(content_type: str) -> str:
    kind = content_type.partition(";")[0].strip()[:60]
    if kind.startswith("audio/") or kind.startswith("video/"):
        return f"a media file ({kind})"
    return f"something else ({kind})" if kind else "something else"
