"""The operators' overview: lanes, permits, workers, observer, and how many workflows stand where."""

import asyncio
from datetime import datetime

import msgspec

from app.web.parts import WebParts
from kernel.errors import BrokerUnavailable
from kernel.lanes import LaneFigures
from kernel.permits import Limits, PermitFigures


class PermitRow(msgspec.Struct, frozen=True, kw_only=True):
    """A resource, its limits (0: unlimited) and its use; None where Redis cannot be asked."""

    resource: str
    max_concurrency: int
    max_starts_per_second: float
    in_use: int | None
    waiting: int | None
    starts_last_second: int | None


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as of its last beat; a silent one has missed several, and is dead, paused or cut off."""

    name: str
    slots: int
    busy: int
    beat_at: datetime | None
    silent: bool


class ObserverFigures(msgspec.Struct, frozen=True):
    """Events that wait to be projected, and events dropped because their queue was full, over all workers."""

    depth: int
    dropped: int


class StatusCount(msgspec.Struct, frozen=True):
    """How many workflows of one type have one status."""

    type: str
    status: str
    count: int


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """`lanes` is None while Redis cannot be asked."""

    lanes: list[LaneFigures] | None
    permits: list[PermitRow]
    workers: list[WorkerRow]
    observer: ObserverFigures
    workflows: list[StatusCount]


async def overview(parts: WebParts) -> Overview:
    """The figures now."""
    resources = sorted(parts.permit_limits.defaults)
    lanes, workers, counts, permits = await asyncio.gather(
        _lanes(parts),
        parts.projections.workers(),
        parts.projections.counts(),
        asyncio.gather(*(permit(parts, one) for one in resources)),
    )
    return Overview(
        lanes=lanes,
        permits=permits,
        workers=[_worker_row(worker) for worker in workers],
        observer=_observer(workers),
        workflows=msgspec.convert(counts, list[StatusCount]),
    )


async def permit(parts: WebParts, resource: str) -> PermitRow:
    """One resource."""
    limits = await parts.permit_limits.of(resource)
    return _permit_row(resource, limits, await _figures(parts, resource))


async def _lanes(parts: WebParts) -> list[LaneFigures] | None:
    try:
        return await parts.lanes.figures()
    except BrokerUnavailable:
        return None


async def _figures(parts: WebParts, resource: str) -> PermitFigures | None:
    try:
        return await parts.permits.figures(resource)
    except BrokerUnavailable:
        return None


def _permit_row(resource: str, limits: Limits, figures: PermitFigures | None) -> PermitRow:
    return PermitRow(
        resource=resource,
        max_concurrency=limits.max_concurrency,
        max_starts_per_second=limits.max_starts_per_second,
        in_use=figures.in_use if figures else None,
        waiting=figures.waiting if figures else None,
        starts_last_second=figures.starts_last_second if figures else None,
    )


def _worker_row(worker: dict) -> WorkerRow:
    return msgspec.convert({"name": worker["_id"], **worker}, WorkerRow)


def _observer(workers: list[dict]) -> ObserverFigures:
    return ObserverFigures(
        sum(worker.get("observer_depth", 0) for worker in workers), sum(worker.get("dropped", 0) for worker in workers)
    )
