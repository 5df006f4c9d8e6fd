"""The page of an error, for people; without a session it is the way to the sign-in page."""

from typing import Any, ClassVar
from urllib.parse import quote

import msgspec
from litestar import Request, Response
from litestar.response import Redirect

from app.web.pages.language import speak_to
from app.web.pages.render import Shell, render, texts
from app.web.problems import Problem


class ProblemPage(msgspec.Struct, frozen=True, kw_only=True):
    """Template `problem.html`."""

    template: ClassVar[str] = "problem.html"
    shell: Shell
    status_code: int
    code: str
    detail: str


def problem_page(request: Request[Any, Any, Any], problem: Problem) -> Response[Any]:
    """The response of a page that cannot be shown."""
    if problem.code == "not_signed_in":
        return Redirect(f"/sign-in?next={quote(_path(request), safe='')}", status_code=303)
    speak_to(request)  # a guard refuses before any route has taken the request
    title = texts(f"problem.{problem.code}") if f"problem.{problem.code}" in texts else texts("problem.other")
    user = request.scope.get("user")
    shell = Shell(title=title, user=user.name if user else "", operator=bool(user and user.is_operator))
    page = ProblemPage(shell=shell, status_code=problem.status_code, code=problem.code, detail=_detail(problem))
    response = render(page, problem.status_code)
    response.headers.update(problem.headers)
    return response


def _detail(problem: Problem) -> str:
    """In the reader's language where the code alone says enough; else what programs are told."""
    return texts(f"refusal.{problem.code}") if f"refusal.{problem.code}" in texts else problem.detail


def _path(request: Request[Any, Any, Any]) -> str:
    if request.method != "GET":
        return "/"
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
