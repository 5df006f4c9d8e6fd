"""The Litestar application: every route, and what holds for all of them."""

from typing import Any

from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import Message, Scope

from app.web import downloads, hooks, live, operator, summaries, uploads
from app.web.access import from_our_pages
from app.web.assets import asset
from app.web.errors import answer
from app.web.health import healthz
from app.web.metrics import site_metrics
from app.web.pages import home, language, operators, sign_in, summary
from app.web.parts import WebParts
from app.web.problems import CODES

BODY_LIMIT = 64 * 1024
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


def create_app(parts: WebParts) -> Litestar:
    """The whole web application over `parts`."""

    async def the_parts() -> WebParts:
        return parts

    async def count(message: Message, scope: Scope) -> None:
        parts.counted.answered(message, scope)

    return Litestar(
        route_handlers=[
            healthz,
            site_metrics(parts),
            summaries.router,
            uploads.router,
            downloads.router,
            live.router,
            operator.router,
            home.router,
            summary.router,
            operators.router,
            hooks.stream_hook,
            sign_in.sign_in_page,
            sign_in.sign_in,
            sign_in.sign_out,
            language.language,
            asset,
        ],
        dependencies={"parts": Provide(the_parts)},
        guards=[from_our_pages],
        before_request=language.choose,
        exception_handlers={Exception: answer},
        before_send=[_add_headers, count],
        request_max_body_size=BODY_LIMIT,
        openapi_config=_openapi(),
        logging_config=None,
        state=State({"parts": parts}),
    )


async def _add_headers(message: Message, scope: Scope) -> None:
    if message["type"] == "http.response.start":
        headers: list[Any] = list(message["headers"])
        message["headers"] = headers + _RAW_HEADERS + ([] if _says_who_may_keep(headers) else _PRIVATE)


_PRIVATE = [(b"cache-control", b"no-store")]


def _says_who_may_keep(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name.lower() == b"cache-control" for name, _ in headers)


def _openapi() -> OpenAPIConfig:
    codes = "\n".join(f"- `{code}` ({status}): {meaning}" for code, (status, meaning) in CODES.items())
    return OpenAPIConfig(
        title="Baton",
        version="1",
        description=f"Errors are `{{status_code, detail, code}}`. Codes:\n\n{codes}",
        path="/schema",
        render_plugins=[JsonRenderPlugin(path=["/", "/openapi.json"])],
        security=[{"token": []}],
        components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
    )
