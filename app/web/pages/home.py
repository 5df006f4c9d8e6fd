"""The home page: subscribe, and my summaries as they stand."""

from typing import Any, ClassVar, get_args

import msgspec
from litestar import Response, Router, get, post
from litestar.params import URLEncodedBody
from litestar.response import Redirect

from activities.payloads import Language, Style
from app.settings import Suggested
from app.subscriptions import BadAddress
from app.views import SummaryView
from app.web.access import signed_in
from app.web.pages.forms import read_form
from app.web.pages.render import Shell, render, shell_for, texts
from app.web.parts import Parts, SignedIn, WebParts
from app.web.summaries import Subscription

SHOWN = 50


class SubscribeForm(msgspec.Struct, frozen=True):
    """What the form sends, and holds again when it was refused."""

    url: str = ""
    style: str = "brief"
    language: str = "auto"


class HomePage(msgspec.Struct, frozen=True, kw_only=True):
    """Template `home.html`. `problem` says why the address in `form` was refused."""

    template: ClassVar[str] = "home.html"
    shell: Shell
    summaries: list[SummaryView]
    suggested: list[Suggested]
    form: SubscribeForm
    problem: str = ""
    upload_megabytes: int
    styles: tuple[str, ...] = get_args(Style)
    languages: tuple[str, ...] = get_args(Language)


@get("/", include_in_schema=False)
async def home(request: SignedIn, parts: Parts) -> Response[str]:
    return render(await _page(request, parts, SubscribeForm()))


@post("/", include_in_schema=False)
async def subscribe(request: SignedIn, parts: Parts, data: URLEncodedBody[SubscribeForm]) -> Response[Any]:
    wanted = read_form(msgspec.structs.asdict(data), Subscription)
    try:
        view, _ = await parts.subscriptions.subscribe(
            request.user.user_id, wanted.url.strip(), style=wanted.style, language=wanted.language
        )
    except BadAddress as error:
        return render(await _page(request, parts, data, str(error)), 422)
    return Redirect(f"/summaries/{view.id}", status_code=303)


async def _page(request: SignedIn, parts: WebParts, form: SubscribeForm, problem: str = "") -> HomePage:
    return HomePage(
        shell=shell_for(request.user, texts("home.title"), "home"),
        summaries=await parts.subscriptions.listing(request.user.user_id, SHOWN, None),
        suggested=parts.settings.suggested_streams,
        form=form,
        problem=problem,
        upload_megabytes=parts.settings.upload_megabytes,
    )


router = Router("/", route_handlers=[home, subscribe], guards=[signed_in])
