"""From a page's Struct to HTML. A template sees the Struct's fields and nothing of the request."""

from datetime import datetime
from typing import ClassVar, Protocol

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import Response
from markupsafe import Markup

from app.accounts import User
from app.web.assets import FOLDER, ROOT
from app.web.texts import CATALOGUES, texts


class Shell(msgspec.Struct, frozen=True, kw_only=True):
    """What surrounds every page."""

    title: str
    here: str = ""  # home | operators: the marked entry of the navigation
    user: str = ""  # name of who is signed in
    operator: bool = False
    root: str = ROOT


class Page(Protocol):
    """A page: the name of its template, and its shell."""

    template: ClassVar[str]

    @property
    def shell(self) -> Shell: ...


def shell_for(user: User, title: str, here: str = "") -> Shell:
    """The shell of a signed-in person's page."""
    return Shell(title=title, here=here, user=user.name, operator=user.is_operator)


def render(page: Page, status_code: int = 200) -> Response[str]:
    """The page as a response. Nobody but its reader may keep it."""
    fields = {name: getattr(page, name) for name in page.__struct_fields__}  # type: ignore[attr-defined]  # a Struct
    html = _environment.get_template(page.template).render(fields)
    return Response(html, media_type="text/html", status_code=status_code, headers={"cache-control": "no-store"})


# ---- filters ----


def when(instant: datetime | None, form: str = "moment") -> Markup:
    """A `time` element: readable as it is, rewritten in the reader's own zone by the page's script.

    `form`: moment (date and time), ago or elapsed (how long since), left (how long until).
    """
    if instant is None:
        return Markup("–")
    text = instant.strftime("%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}" data-form="{}">{}</time>').format(instant.isoformat(), form, text)


def clock(seconds: float) -> str:
    """A place in a recording: 1:02:03 or 2:03."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def span(ms: int | None) -> str:
    """A length of time in its two largest units, without a second one that is zero."""
    if ms is None:
        return "–"
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, second = divmod(round(ms / 1000), 60)
    hours, minute = divmod(minutes, 60)
    units = ((hours, "h"), (minute, "min")) if hours else ((minute, "min"), (second, "s"))
    return " ".join(f"{count} {unit}" for count, unit in units if count)


def pretty(value: object) -> str:
    """JSON for people."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _make_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER.parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"t": texts, "catalogues": list(CATALOGUES)}
    environment.filters |= {"when": when, "clock": clock, "span": span, "pretty": pretty}
    return environment


_environment = _make_environment()
