"""The page of one summary: how far it is, its text as it is written, its transcript, its recording."""

from typing import ClassVar

import msgspec
from litestar import Response, Router, get, post
from litestar.response import Redirect

from app.views import SummaryView, TranscriptView
from app.web.access import signed_in
from app.web.pages.render import Shell, render, shell_for
from app.web.parts import Parts, SignedIn
from app.web.problems import not_found
from app.web.summaries import UNDO_S, SummaryId, owned

ENDED = ("completed", "failed", "canceled")


class SummaryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Template `summary.html`. `live`: the page's script follows the event stream."""

    template: ClassVar[str] = "summary.html"
    shell: Shell
    summary: SummaryView
    transcript: TranscriptView | None
    has_audio: bool
    live: bool


class RemovedPage(msgspec.Struct, frozen=True, kw_only=True):
    """Template `removed.html`: says goodbye and offers to undo it for `undo_s` seconds."""

    template: ClassVar[str] = "removed.html"
    shell: Shell
    summary: SummaryView
    undo_s: int


@get("/{summary_id:str}", include_in_schema=False)
async def summary(request: SignedIn, parts: Parts, summary_id: SummaryId) -> Response[str]:
    view = await owned(request, parts, summary_id)
    user_id = request.user.user_id
    page = SummaryPage(
        shell=shell_for(request.user, view.title),
        summary=view,
        transcript=await parts.subscriptions.transcript(user_id, summary_id),
        has_audio=await parts.subscriptions.media(user_id, summary_id) is not None,
        live=view.state not in ENDED,
    )
    return render(page)


@post("/{summary_id:str}/retry", include_in_schema=False)
async def retry(request: SignedIn, parts: Parts, summary_id: SummaryId) -> Redirect:
    await parts.subscriptions.retry(request.user.user_id, summary_id)
    return Redirect(f"/summaries/{summary_id}", status_code=303)


@post("/{summary_id:str}/remove", include_in_schema=False)
async def remove(request: SignedIn, parts: Parts, summary_id: SummaryId) -> Response[str]:
    view = await owned(request, parts, summary_id)
    if not await parts.subscriptions.remove(request.user.user_id, summary_id):
        raise not_found("summary", summary_id)
    return render(RemovedPage(shell=shell_for(request.user, view.title), summary=view, undo_s=UNDO_S))


@post("/{summary_id:str}/undo", include_in_schema=False)
async def undo(request: SignedIn, parts: Parts, summary_id: SummaryId) -> Redirect:
    await parts.subscriptions.undo_remove(request.user.user_id, summary_id)
    return Redirect(f"/summaries/{summary_id}", status_code=303)


router = Router("/summaries", route_handlers=[summary, retry, remove, undo], guards=[signed_in])
