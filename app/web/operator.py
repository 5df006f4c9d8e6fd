"""`/api/ops`: where every job stands and why, and the operators' acts. Reads projections only."""

import asyncio
from datetime import datetime
from typing import Annotated, get_args

import msgspec
from litestar import Router, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import Meta

from app.web.access import operators_only, signed_in
from app.web.overview import Overview, PermitRow, overview, permit
from app.web.parts import Act, Parts, SignedIn, WebParts
from app.web.problems import Problem, not_found
from app.web.summaries import Limit
from app.web.workflow_views import WorkflowDetail, WorkflowRow, workflow_detail, workflow_row
from kernel.model import Status
from kernel.permits import Limits

TAGS = ["operators"]
WorkflowId = FromPath[str]
LONGEST_REASON = 500
SHOWN_SIGNALS = 100


class NewLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of a resource; 0 switches one off."""

    max_concurrency: Annotated[int, Meta(ge=0, le=100_000)]
    max_starts_per_second: Annotated[float, Meta(ge=0, le=100_000)]


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why an operator acts, kept in the audit list; and from which step, for a retry that shall repeat some."""

    reason: Annotated[str, Meta(min_length=1, max_length=LONGEST_REASON)]
    from_step: Annotated[str, Meta(max_length=40)] | None = None


class HookView(msgspec.Struct, frozen=True):
    """For whoever sets up a stream's own system."""

    path: str
    secret: str


class ActResult(msgspec.Struct, frozen=True):
    """Whether the act changed anything."""

    changed: bool


@get("/overview", tags=TAGS, summary="Lanes, permits, workers, observer, workflows by type and status")
async def read_overview(parts: Parts) -> Overview:
    return await overview(parts)


@get("/workflows", tags=TAGS, summary="Workflows, latest change first")
async def list_workflows(
    parts: Parts,
    type: FromQuery[str | None] = None,
    status: FromQuery[Status | None] = None,
    step: FromQuery[str | None] = None,
    q: FromQuery[str | None] = None,
    limit: Limit = 50,
    before: FromQuery[datetime | None] = None,
) -> list[WorkflowRow]:
    """`q` is text of a workflow id, biz_key or error; `before` the `updated_at` of the last one already seen."""
    found = await parts.projections.snapshots(type, status, step, q, limit, before)
    return [workflow_row(snapshot) for snapshot in found]


@get("/workflows/{workflow_id:str}", tags=TAGS, summary="One workflow: steps, attempts, what it waits for")
async def read_workflow(parts: Parts, workflow_id: WorkflowId) -> WorkflowDetail:
    return await detail_of(parts, workflow_id)


@put("/permits/{resource:str}", tags=TAGS, summary="Change a resource's limits")
async def change_limits(parts: Parts, resource: FromPath[str], data: JSONBody[NewLimits]) -> PermitRow:
    """In force at the next acquire; who holds a permit keeps it."""
    await set_limits(parts, resource, data)
    return await permit(parts, resource)


@get("/streams/{stream_id:str}/hook", tags=TAGS, summary="Where a stream's own system sends its hooks, and its secret")
async def read_hook(parts: Parts, stream_id: FromPath[str]) -> HookView:
    secret = await parts.hooks.secret_of(stream_id)
    if secret is None:
        raise not_found("stream", stream_id)
    return HookView(f"/hooks/streams/{stream_id}", secret)


@post("/workflows/{workflow_id:str}/{act:str}", tags=TAGS, status_code=200, summary="Supersede, retry, release, repair")
async def perform(
    request: SignedIn, parts: Parts, workflow_id: WorkflowId, act: FromPath[str], data: JSONBody[Reason]
) -> ActResult:
    await detail_of(parts, workflow_id)
    return ActResult(await act_on(parts, workflow_id, act, data, request.user.name))


async def detail_of(parts: WebParts, workflow_id: str) -> WorkflowDetail:
    """The workflow, or the problem that there is none."""
    snapshot = await parts.projections.snapshot(workflow_id)
    if snapshot is None:
        raise not_found("workflow", workflow_id)
    attempts, signals, related, audit = await asyncio.gather(
        parts.projections.attempts(workflow_id),
        parts.signals(workflow_id, SHOWN_SIGNALS),
        parts.related(snapshot),
        parts.audit(workflow_id),
    )
    return workflow_detail(snapshot, attempts, signals=signals, related=related, audit=audit)


async def set_limits(parts: WebParts, resource: str, limits: NewLimits) -> None:
    """Store the limits of a resource that exists."""
    if resource not in parts.permit_limits.defaults:
        raise not_found("resource", resource)
    await parts.permit_limits.change(resource, Limits(limits.max_concurrency, limits.max_starts_per_second))


async def act_on(parts: WebParts, workflow_id: str, act: str, given: Reason, operator: str) -> bool:
    """Do one of the acts that exist here."""
    chosen = next((name for name in get_args(Act) if name == act), None)
    if chosen is None or chosen not in parts.acts:
        raise Problem("not_found", f"There is no act {act!r}; there are: {', '.join(parts.acts) or 'none'}.")
    return await parts.acts[chosen](workflow_id, given.reason, operator, given.from_step or None)


router = Router(
    "/api/ops",
    route_handlers=[read_overview, list_workflows, read_workflow, change_limits, read_hook, perform],
    guards=[signed_in, operators_only],
)
