"""Who is asking, and whether a browser may ask it: guards that run before anything of a request is read.

A token in `Authorization` counts alone: a wrong one is refused even beside a good cookie. A cookie counts only for
requests that the browser itself says come from our own pages.
"""

from time import time
from typing import Any

from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler

from app.accounts import User
from app.web import cookies
from app.web.parts import parts_of
from app.web.problems import Problem

Connection = ASGIConnection[Any, Any, Any, State]
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


async def signed_in(connection: Connection, _: BaseRouteHandler) -> None:
    """Guard: somebody is signed in; the route finds them as `request.user`."""
    user = await identify(connection)
    if user is None:
        raise Problem(
            "not_signed_in",
            "Sign in, or send a valid API token as 'Authorization: Bearer …'.",
            headers={"www-authenticate": "Bearer"},
        )
    connection.scope["user"] = user


async def operators_only(connection: Connection, _: BaseRouteHandler) -> None:
    """Guard, after `signed_in`."""
    if not connection.user.is_operator:
        raise Problem("operators_only", "This is for operators; ask one to do it or to give you the role.")


async def from_our_pages(connection: Connection, _: BaseRouteHandler) -> None:
    """Guard against cross-site request forgery, for everything that changes something.

    Browsers name where a request comes from in `Sec-Fetch-Site` or, without TLS, in `Origin`; a page cannot forge
    either. A request that carries a cookie and names neither is refused too.
    """
    if str(connection.scope.get("method")) in SAFE_METHODS or _bearer(connection) is not None:
        return
    if not _same_origin(connection):
        raise Problem(
            "cross_site_request", "This request does not come from a page of this site. Open the site and try again."
        )


async def identify(connection: Connection) -> User | None:
    """The user of the token or, without one, of the session cookie; None for neither or a bad one."""
    accounts = parts_of(connection).accounts
    token = _bearer(connection)
    if token is not None:
        return await accounts.by_token(token)
    session = session_of(connection)
    user = await accounts.get(session.user_id) if session else None
    return user if user and session and user.session_generation == session.generation else None


def session_of(connection: Connection) -> cookies.Session | None:
    """The genuine session in the cookie, whether or not its user still exists."""
    value = connection.cookies.get(cookies.NAME)
    return cookies.verify(value, parts_of(connection).secret, time()) if value else None


def _bearer(connection: Connection) -> str | None:
    header = connection.headers.get("authorization")
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _same_origin(connection: Connection) -> bool:
    site, origin = connection.headers.get("sec-fetch-site"), connection.headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    if origin is not None:
        return origin.partition("://")[2] == connection.headers.get("host")
    return cookies.NAME not in connection.cookies
