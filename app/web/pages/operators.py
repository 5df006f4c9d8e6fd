"""The operators' pages: overview with the workflow list, and one page per workflow."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar
from urllib.parse import urlencode

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, FromQuery, URLEncodedBody
from litestar.response import Redirect

from activities.plans import PLANS
from app.web.access import operators_only, signed_in
from app.web.operator import NewLimits, Reason, WorkflowId, act_on, detail_of, set_limits
from app.web.overview import Overview, overview
from app.web.pages.forms import read_form
from app.web.pages.render import Shell, render, shell_for, texts
from app.web.parts import Act, Parts, SignedIn
from app.web.timeline import Tries, bars, tries
from app.web.workflow_views import WorkflowDetail, WorkflowRow, workflow_row
from kernel.model import Status

SHOWN = 50
STEPS = tuple(dict.fromkeys(step for plan in PLANS for step in plan.steps))


class Filters(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the list is narrowed to; also its shareable address."""

    type: str = ""
    status: str = ""
    step: str = ""
    q: str = ""

    @property
    def query(self) -> str:
        return urlencode(msgspec.to_builtins(self))


class OperatorsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Template `operators.html`. `more` is the address of the next part of the list, empty at its end."""

    template: ClassVar[str] = "operators.html"
    shell: Shell
    overview: Overview
    workflows: list[WorkflowRow]
    filters: Filters
    types: list[str]
    statuses: tuple[str, ...] = tuple(Status)
    steps: tuple[str, ...] = STEPS
    more: str


class WorkflowPage(msgspec.Struct, frozen=True, kw_only=True):
    """Template `workflow.html`. `timeline`: the attempts' times, drawn to one scale; `acts`: what may be done."""

    template: ClassVar[str] = "workflow.html"
    shell: Shell
    detail: WorkflowDetail
    timeline: Sequence[Tries]
    acts: list[Act]
    live: bool


@get("/", include_in_schema=False)
async def operators(
    request: SignedIn,
    parts: Parts,
    type: FromQuery[str] = "",
    status: FromQuery[str] = "",
    step: FromQuery[str] = "",
    q: FromQuery[str] = "",
    before: FromQuery[datetime | None] = None,
) -> Response[str]:
    filters = Filters(type, status, step, q.strip())
    found = await parts.projections.snapshots(type, status, step, filters.q, SHOWN, before)
    rows, figures = [workflow_row(snapshot) for snapshot in found], await overview(parts)
    page = OperatorsPage(
        shell=shell_for(request.user, texts("operators.title"), "operators"),
        overview=figures,
        workflows=rows,
        filters=filters,
        types=sorted({count.type for count in figures.workflows}),
        more=_more(filters, rows),
    )
    return render(page)


def _more(filters: Filters, rows: list[WorkflowRow]) -> str:
    if len(rows) < SHOWN:
        return ""
    last = urlencode({"before": rows[-1].updated_at.isoformat()})
    return f"/operators?{'&'.join(part for part in (filters.query, last) if part)}"


@get("/workflows/{workflow_id:str}", include_in_schema=False)
async def workflow(request: SignedIn, parts: Parts, workflow_id: WorkflowId) -> Response[str]:
    detail = await detail_of(parts, workflow_id)
    page = WorkflowPage(
        shell=shell_for(request.user, detail.workflow.biz_key, "operators"),
        detail=detail,
        timeline=tries(bars(detail.attempts)),
        acts=list(parts.acts),
        live=detail.workflow.finished_at is None,
    )
    return render(page)


@post("/permits/{resource:str}", include_in_schema=False)
async def limits(parts: Parts, resource: FromPath[str], data: URLEncodedBody[dict[str, str]]) -> Redirect:
    await set_limits(parts, resource, read_form(data, NewLimits))
    return Redirect("/operators", status_code=303)


@post("/workflows/{workflow_id:str}/{act:str}", include_in_schema=False)
async def perform(
    request: SignedIn, parts: Parts, workflow_id: WorkflowId, act: FromPath[str], data: URLEncodedBody[dict[str, str]]
) -> Redirect:
    await detail_of(parts, workflow_id)
    await act_on(parts, workflow_id, act, read_form(data, Reason), request.user.name)
    return Redirect(f"/operators/workflows/{workflow_id}", status_code=303)


router = Router("/operators", route_handlers=[operators, workflow, limits, perform], guards=[signed_in, operators_only])
