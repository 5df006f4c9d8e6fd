"""From any exception to one answer: the problem as JSON, or as a page for a person who browses.

A fault of ours is logged with its traceback under a number, and only the number leaves the house.
"""

import logging
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from activities.ports import QuotaExhausted
from app.subscriptions import BadAddress, KeyReused, NotFailed, NotFound
from app.web.pages.problem import problem_page
from app.web.problems import CODES, Problem
from kernel.errors import BrokerUnavailable, StoreUnavailable, UnknownStep

log = logging.getLogger(__name__)
RETRY_SOON = {"retry-after": "2"}
FOR_PROGRAMS = ("/api/", "/schema", "/healthz", "/metrics", "/hooks/")
_BY_STATUS = {400: "malformed_request", 401: "not_signed_in", 404: "not_found", 405: "method_not_allowed"} | {
    413: "too_large",
    415: "unsupported_media_type",
    429: "too_many_requests",
}


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """The response for `error`; the application's only exception handler."""
    problem = problem_of(error)
    if wants_page(request):
        return problem_page(request, problem)
    return Response(
        problem.body, status_code=problem.status_code, headers=problem.headers, media_type="application/json"
    )


def wants_page(request: Request[Any, Any, Any]) -> bool:
    """Whether a person's browser asks, and not for one of the addresses meant for programs."""
    return not request.url.path.startswith(FOR_PROGRAMS) and "text/html" in request.headers.get("accept", "")


def problem_of(error: Exception) -> Problem:
    """The problem that stands for `error`."""
    if isinstance(error, Problem):
        return error
    for kind, translate in _TRANSLATIONS.items():
        if isinstance(error, kind):
            return translate(error)
    number = token_hex(4)
    log.error("unexpected error %s", number, exc_info=error)
    return Problem(
        "internal_error", f"Something went wrong on our side; it is in our log as {number}. Try again later."
    )


def _quota(error: QuotaExhausted) -> Problem:
    seconds = max(1, round(getattr(error, "retry_after_s", 0) or 3600))
    return Problem("quota_exhausted", str(error), headers={"retry-after": str(seconds)})


def _store(_: Exception) -> Problem:
    detail = "The database does not answer at the moment. Nothing is lost; try again in a few seconds."
    return Problem("store_unavailable", detail, headers=RETRY_SOON)


def _broker(_: Exception) -> Problem:
    return Problem("broker_unavailable", "The queue does not answer at the moment. Try again.", headers=RETRY_SOON)


def _validation(error: ValidationException) -> Problem:
    extra = error.extra if isinstance(error.extra, list) else []
    reasons = [f"{item.get('key', 'request')}: {item.get('message', '')}" for item in extra if isinstance(item, dict)]
    return Problem("invalid_request", "; ".join(reasons) or error.detail)


def _http(error: HTTPException) -> Problem:
    code = _BY_STATUS.get(error.status_code)
    if code is None:
        code = "malformed_request" if error.status_code < 500 else "internal_error"
    detail = error.detail if code == "unsupported_media_type" else _sentence(code)
    if code == "malformed_request":
        detail = f"The request cannot be read: {error.detail}."
    return Problem(code, detail, headers=error.headers)


def _sentence(code: str) -> str:
    meaning = CODES[code][1]
    return f"{meaning[0].upper()}{meaning[1:]}."


_TRANSLATIONS: Mapping[type[Exception], Callable[[Any], Problem]] = {
    ValidationException: _validation,
    HTTPException: _http,
    StoreUnavailable: _store,
    BrokerUnavailable: _broker,
    QuotaExhausted: _quota,
    BadAddress: lambda error: Problem("bad_address", str(error)),
    KeyReused: lambda error: Problem("key_reused", str(error)),
    NotFailed: lambda error: Problem("not_failed", str(error)),
    UnknownStep: lambda error: Problem("invalid_request", str(error)),
    NotFound: lambda error: Problem("not_found", str(error)),
}
