"""Signing in and out."""

from time import time
from typing import Annotated, Any, ClassVar

import msgspec
from litestar import Request, Response, get, post
from litestar.datastructures import Cookie
from litestar.params import FromQuery, URLEncodedBody
from litestar.response import Redirect
from msgspec import Meta

from app.accounts import User
from app.web import cookies
from app.web.pages.render import Shell, render, texts
from app.web.parts import Parts
from app.web.problems import CODES


class SignInPage(msgspec.Struct, frozen=True, kw_only=True):
    """Template `sign-in.html`. `next` is the page to go on to; `problem` says why the last try failed."""

    template: ClassVar[str] = "sign-in.html"
    shell: Shell
    next: str
    name: str = ""
    problem: str = ""


class SignInForm(msgspec.Struct, frozen=True):
    """What the form sends."""

    name: Annotated[str, Meta(max_length=200)] = ""
    password: Annotated[str, Meta(max_length=2000)] = ""
    next: str = "/"


@get("/sign-in", include_in_schema=False)
async def sign_in_page(next: FromQuery[str] = "/") -> Response[str]:
    return render(SignInPage(shell=Shell(title=texts("sign_in.title")), next=inside(next)))


@post("/sign-in", include_in_schema=False)
async def sign_in(request: Request[Any, Any, Any], parts: Parts, data: URLEncodedBody[SignInForm]) -> Response[Any]:
    name = data.name.strip()
    if wait_s := await parts.sign_ins.enter(name):
        refused = _refused(data, "too_many_requests", texts("sign_in.too_often", seconds=wait_s))
        refused.headers["retry-after"] = str(wait_s)
        return refused
    user = await parts.accounts.check_password(name, data.password)
    if user is None:
        return _refused(data, "wrong_password", texts("sign_in.wrong"))
    await parts.sign_ins.forget(name)
    response = Redirect(inside(data.next), status_code=303)
    response.set_cookie(_cookie(_session_value(user, parts.secret), cookies.LIFETIME_S, request.url.scheme == "https"))
    return response


@post("/sign-out", include_in_schema=False)
async def sign_out(request: Request[Any, Any, Any]) -> Redirect:
    response = Redirect("/sign-in", status_code=303)
    response.set_cookie(_cookie("", 0, request.url.scheme == "https"))
    return response


def _refused(data: SignInForm, code: str, problem: str) -> Response[str]:
    shell = Shell(title=texts("sign_in.title"))
    page = SignInPage(shell=shell, next=inside(data.next), name=data.name, problem=problem)
    return render(page, CODES[code][0])


def inside(path: str) -> str:
    """`path` if it is a page of this site, else the home page: nobody is sent elsewhere after signing in."""
    plain = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if plain else "/"


def _session_value(user: User, secret: str) -> str:
    session = cookies.Session(user.user_id, user.session_generation, int(time()) + cookies.LIFETIME_S)
    return cookies.sign(session, secret)


def _cookie(value: str, max_age_s: int, secure: bool) -> Cookie:
    return Cookie(cookies.NAME, value=value, max_age=max_age_s, httponly=True, samesite="lax", secure=secure)
