"""`GET /metrics` of the site: the operators' overview as figures, which parts work, and what this process answered.

The figures of the overview are the same whichever process of the site is asked.
"""

import asyncio

from litestar.handlers import HTTPRouteHandler
from prometheus_client.core import Metric

from app.metrics import gauge, metrics_route, text_of
from app.web.health import words_of_parts
from app.web.overview import Overview, PermitRow, WorkerRow, overview
from app.web.parts import WebParts
from kernel.errors import StoreUnavailable
from kernel.lanes import LaneFigures


def site_metrics(parts: WebParts) -> HTTPRouteHandler:
    """The route."""

    async def render() -> bytes:
        return text_of(parts.counted.registry, await families(parts))

    return metrics_route(parts.settings, render)


async def families(parts: WebParts) -> list[Metric]:
    """What can be known now: with MongoDB away only which parts work."""
    words, shared = await asyncio.gather(words_of_parts(parts), _shared(parts))
    up = [((name,), float(word == "ok")) for name, word in words.items()]
    return [gauge("baton_part_up", "Whether a part works, as /healthz says", ("part",), up), *shared]


async def _shared(parts: WebParts) -> list[Metric]:
    try:
        found, tasks = await asyncio.gather(overview(parts), parts.speech_tasks())
    except StoreUnavailable:
        return []
    speech = [((state,), count) for state, count in tasks.items()]
    return [
        *_lanes(found.lanes or []),
        *_permits(found.permits),
        *_workers(found.workers),
        *_totals(found),
        gauge("baton_asr_tasks", "Tasks of the speech service that have not ended", ("state",), speech),
    ]


def _lanes(lanes: list[LaneFigures]) -> list[Metric]:
    label = ("lane",)
    named = [((str(one.lane),), one) for one in lanes]
    return [
        gauge("baton_lane_depth", "Workflows in a lane", label, [(at, one.depth) for at, one in named]),
        gauge("baton_lane_ready", "Those whose time has come", label, [(at, one.ready) for at, one in named]),
        gauge(
            "baton_lane_oldest_wait_seconds",
            "How long the first ready one waits",
            label,
            [(at, one.oldest_wait_s) for at, one in named],
        ),
    ]


def _permits(rows: list[PermitRow]) -> list[Metric]:
    """Limits are known without Redis, use is not."""
    label = ("resource",)
    used = [((one.resource,), one.in_use) for one in rows if one.in_use is not None]
    waiting = [((one.resource,), one.waiting) for one in rows if one.waiting is not None]
    limits = [((one.resource,), one.max_concurrency) for one in rows]
    starts = [((one.resource,), one.max_starts_per_second) for one in rows]
    return [
        gauge("baton_permits_in_use", "Permits held", label, used),
        gauge("baton_permits_waiting", "Steps refused and still asking", label, waiting),
        gauge("baton_permits_limit", "Most permits at once; 0: unlimited", label, limits),
        gauge("baton_permit_starts_per_second_limit", "Most starts a second; 0: unlimited", label, starts),
    ]


def _workers(rows: list[WorkerRow]) -> list[Metric]:
    beating = [one for one in rows if not one.silent]
    states = [(("beating",), len(beating)), (("silent",), len(rows) - len(beating))]
    return [
        gauge("baton_workers", "Workers of the last hour by whether they beat", ("state",), states),
        gauge("baton_slots", "Slots of all beating workers", (), [((), sum(one.slots for one in beating))]),
        gauge("baton_slots_busy", "Those in use", (), [((), sum(one.busy for one in beating))]),
    ]


def _totals(found: Overview) -> list[Metric]:
    counts = [((one.type, one.status), one.count) for one in found.workflows]
    return [
        gauge("baton_workflows", "Workflows by type and status", ("type", "status"), counts),
        gauge("baton_observer_queue", "Observations not yet written, all workers", (), [((), found.observer.depth)]),
        gauge("baton_observer_dropped", "Observations refused, all workers", (), [((), found.observer.dropped)]),
    ]
