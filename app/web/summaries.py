"""`/api/summaries`: subscribe, look, retry, remove. Everybody sees only their own; the rest does not exist."""

from typing import Annotated

import msgspec
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter
from msgspec import Meta

from activities.payloads import Language, Style
from app.views import SummaryView, TranscriptView
from app.web.access import signed_in
from app.web.parts import Parts, SignedIn
from app.web.problems import Problem, not_found

TAGS = ["summaries"]
UNDO_S = 10
SummaryId = FromPath[str]
Limit = Annotated[int, QueryParameter(ge=1, le=200)]
IdempotencyKey = Annotated[str | None, HeaderParameter(name="Idempotency-Key", min_length=1, max_length=200)]


class Subscription(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to summarise, and how."""

    url: Annotated[str, Meta(max_length=2000)]
    style: Style = "brief"
    language: Language = "auto"


class Removed(msgspec.Struct, frozen=True):
    """The summary is gone; `POST …/undo` brings it back within `undo_seconds`."""

    id: str
    removed: bool
    undo_seconds: int


@post("/", tags=TAGS, summary="Subscribe to the summary of a stream")
async def subscribe(
    request: SignedIn, parts: Parts, data: JSONBody[Subscription], idempotency_key: IdempotencyKey = None
) -> Response[SummaryView]:
    """201 with the new summary, or 200 with the one there is."""
    view, created = await parts.subscriptions.subscribe(
        request.user.user_id, data.url, style=data.style, language=data.language, idempotency_key=idempotency_key
    )
    headers = {"location": f"/api/summaries/{view.id}"}
    return Response(view, status_code=201 if created else 200, headers=headers)


@get("/", tags=TAGS, summary="My summaries, newest first")
async def listing(
    request: SignedIn, parts: Parts, limit: Limit = 50, before: FromQuery[str | None] = None
) -> list[SummaryView]:
    """`before` is the id of the last one already seen."""
    return await parts.subscriptions.listing(request.user.user_id, limit, before)


@get("/{summary_id:str}", tags=TAGS, summary="One summary")
async def read(request: SignedIn, parts: Parts, summary_id: SummaryId) -> SummaryView:
    return await owned(request, parts, summary_id)


@get("/{summary_id:str}/transcript", tags=TAGS, summary="What was said")
async def transcript(request: SignedIn, parts: Parts, summary_id: SummaryId) -> TranscriptView:
    await owned(request, parts, summary_id)
    found = await parts.subscriptions.transcript(request.user.user_id, summary_id)
    if found is None:
        raise Problem("not_ready", "There is no transcript yet. It is made when the stream has ended.")
    return found


@post("/{summary_id:str}/retry", tags=TAGS, status_code=200, summary="Try a failed summary again")
async def retry(request: SignedIn, parts: Parts, summary_id: SummaryId) -> SummaryView:
    """A new round; what earlier rounds finished is kept."""
    return await parts.subscriptions.retry(request.user.user_id, summary_id)


@delete("/{summary_id:str}", tags=TAGS, status_code=200, summary="Remove a summary")
async def remove(request: SignedIn, parts: Parts, summary_id: SummaryId) -> Removed:
    if not await parts.subscriptions.remove(request.user.user_id, summary_id):
        raise not_found("summary", summary_id)
    return Removed(summary_id, removed=True, undo_seconds=UNDO_S)


@post("/{summary_id:str}/undo", tags=TAGS, status_code=200, summary="Bring back a summary just removed")
async def undo(request: SignedIn, parts: Parts, summary_id: SummaryId) -> SummaryView:
    if not await parts.subscriptions.undo_remove(request.user.user_id, summary_id):
        raise Problem("not_removed", f"It is over {UNDO_S} s since this summary was removed, or it never was.")
    return await owned(request, parts, summary_id)


async def owned(request: SignedIn, parts: Parts, summary_id: str) -> SummaryView:
    """The person's own summary of that id, or the problem that there is none."""
    found = await parts.subscriptions.find(request.user.user_id, summary_id)
    if found is None:
        raise not_found("summary", summary_id)
    return found


router = Router(
    "/api/summaries", route_handlers=[subscribe, listing, read, transcript, retry, remove, undo], guards=[signed_in]
)
