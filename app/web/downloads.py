"""A summary's files: the recording, with byte ranges, and the exports."""

from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from litestar import Request, Response, Router, get, head
from litestar.response import Stream

from activities.ports import RecordingMissing
from app.views import SummaryView, TranscriptView
from app.web import exports
from app.web.access import signed_in
from app.web.parts import Parts, SignedIn, WebParts
from app.web.problems import Problem
from app.web.ranges import Unsatisfiable, parse_range
from app.web.summaries import TAGS, SummaryId, owned

MEDIA_TYPES: Mapping[str, str] = {
    "md": "text/markdown",
    "txt": "text/plain",
    "srt": "application/x-subrip; charset=utf-8",
    "vtt": "text/vtt",
    "json": "application/json",
}


class Export(msgspec.Struct, frozen=True):
    """Summary and transcript in one file."""

    summary: SummaryView
    transcript: TranscriptView | None


@get("/{summary_id:str}/audio", tags=TAGS, summary="The recording, with byte ranges", media_type="audio/ogg")
async def audio(request: SignedIn, parts: Parts, summary_id: SummaryId) -> Stream:
    media_id, size = await _recording(request, parts, summary_id)
    wanted = _wanted(request, f'"{media_id}"', size)
    start, end = wanted or (0, size)
    headers = _headers(media_id, end - start)
    headers |= {"content-range": f"bytes {start}-{end - 1}/{size}"} if wanted else {}
    pieces = parts.recordings.open_range(media_id, start, end)
    return Stream(pieces, status_code=206 if wanted else 200, headers=headers, media_type="audio/ogg")


@head("/{summary_id:str}/audio", tags=TAGS, summary="How large the recording is", media_type="text/plain")
async def audio_head(request: SignedIn, parts: Parts, summary_id: SummaryId) -> Response[None]:
    """What players ask before they seek. (Only as text can an answer be empty; its header says what it is of.)"""
    headers = _headers(*await _recording(request, parts, summary_id))
    return Response(None, headers=headers | {"content-type": "audio/ogg"})


async def _recording(request: SignedIn, parts: WebParts, summary_id: str) -> tuple[str, int]:
    """Id and size in bytes."""
    await owned(request, parts, summary_id)
    media_id = await parts.subscriptions.media(request.user.user_id, summary_id)
    if media_id is None:
        raise Problem("not_ready", "There is no recording yet. It is packaged when the stream has ended.")
    return media_id, await _size(parts, media_id)


def _headers(media_id: str, length: int) -> dict[str, str]:
    return {
        "accept-ranges": "bytes",
        "content-length": str(length),
        "etag": f'"{media_id}"',
        "cache-control": "private, max-age=3600",
    }


async def _size(parts: WebParts, media_id: str) -> int:
    try:
        return await parts.recordings.size(media_id)
    except RecordingMissing as missing:
        raise Problem("not_found", "The recording has been removed.") from missing


def _wanted(request: Request, etag: str, size: int) -> tuple[int, int] | None:
    """The range asked for; the whole if the browser's earlier part is of another recording."""
    if request.headers.get("if-range", etag) != etag:
        return None
    try:
        return parse_range(request.headers.get("range"), size)
    except Unsatisfiable:
        headers = {"content-range": f"bytes */{size}"}
        raise Problem("range_not_satisfiable", f"The recording has {size} bytes.", headers=headers) from None


@get(
    [f"/{{summary_id:str}}/export.{extension}" for extension in MEDIA_TYPES],
    tags=TAGS,
    summary="The summary (md, txt), its transcript (srt, vtt), or both (json) as a file",
)
async def export(request: SignedIn, parts: Parts, summary_id: SummaryId) -> Response[bytes]:
    extension = request.url.path.rpartition(".")[2]
    view = await owned(request, parts, summary_id)
    if view.state != "completed":
        raise Problem("not_ready", "The summary is not finished yet; its page shows how far it is.")
    transcript = await parts.subscriptions.transcript(request.user.user_id, summary_id)
    name = quote(exports.file_name(view.title, extension))
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(_content(extension, view, transcript), media_type=MEDIA_TYPES[extension], headers=headers)


def _content(extension: str, view: SummaryView, transcript: TranscriptView | None) -> bytes:
    segments = transcript.segments if transcript else []
    match extension:
        case "md":
            return exports.markdown(view.title, view.text).encode()
        case "txt":
            return exports.plain(view.title, view.text).encode()
        case "srt":
            return exports.srt(segments).encode()
        case "vtt":
            return exports.vtt(segments).encode()
        case _:
            return msgspec.json.encode(Export(view, transcript))


router = Router("/api/summaries", route_handlers=[audio, audio_head, export], guards=[signed_in])
