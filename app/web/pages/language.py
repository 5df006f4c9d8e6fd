"""The language of the pages: chosen by a person, or asked for by the browser."""

from typing import Any
from urllib.parse import urlsplit

from litestar import Request, get
from litestar.datastructures import Cookie
from litestar.params import FromPath
from litestar.response import Redirect

from app.web.pages.sign_in import inside
from app.web.problems import not_found
from app.web.texts import CATALOGUES, speak

COOKIE = "baton_language"
LIFETIME_S = 365 * 24 * 3600


async def choose(request: Request[Any, Any, Any]) -> None:
    """Before every request that a route takes."""
    speak_to(request)


def speak_to(request: Request[Any, Any, Any]) -> None:
    """Answer this request in its person's language."""
    speak(request.cookies.get(COOKIE), request.headers.get("accept-language", ""))


@get("/language/{language:str}", include_in_schema=False)
async def language(request: Request[Any, Any, Any], language: FromPath[str]) -> Redirect:
    """Keep the choice, and go back to the page it was made on."""
    if language not in CATALOGUES:
        raise not_found("language", language)
    came_from = urlsplit(request.headers.get("referer", ""))
    page = came_from._replace(scheme="", netloc="", fragment="").geturl()
    response = Redirect(inside(page), status_code=303)
    response.set_cookie(Cookie(COOKIE, value=language, max_age=LIFETIME_S, httponly=True, samesite="lax"))
    return response
