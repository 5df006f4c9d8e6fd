"""What a process tells Prometheus, and to whom. Nothing is told to anybody unless the settings say so."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from hmac import compare_digest
from ipaddress import ip_address
from typing import Any

from litestar import Litestar, Request, Response, get
from litestar.exceptions import NotAuthorizedException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from app.serving import serve
from app.settings import Settings
from kernel.worker import Worker

PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
Rows = Iterable[tuple[tuple[str, ...], float]]

disable_created_metrics()  # a second series for every counter, of use to nobody here


class _Given(Collector):
    """Families that were read just now."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def gauge(name: str, meaning: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    """A family of values that go up and down."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def counter(name: str, meaning: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    """A family of values that only grow while the process lives; `name` ends in `_total`."""
    family = CounterMetricFamily(name, meaning, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def process_registry() -> CollectorRegistry:
    """A registry that holds the figures of the process: CPU, memory, open files (Linux)."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry


def text_of(registry: CollectorRegistry, families: list[Metric]) -> bytes:
    """The exposition of both."""
    return generate_latest(registry) + generate_latest(_Given(families))


# ---- who may read ----


def metrics_route(settings: Settings, render: Callable[[], Awaitable[bytes]]) -> HTTPRouteHandler:
    """`GET /metrics`, for whom `BATON_METRICS` names."""

    @get("/metrics", tags=["health"], summary="Figures for Prometheus", media_type="text/plain")
    async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
        check_reader(settings, request)
        return Response(await render(), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    return metrics


def check_reader(settings: Settings, request: Request[Any, Any, Any]) -> None:
    """Raises for everybody who may not read: as if there were nothing, but for a wrong token."""
    if settings.metrics == "token":
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and compare_digest(token.strip().encode(), settings.metrics_token.encode()):
            return
        raise NotAuthorizedException("Send the token that BATON_METRICS_TOKEN names.")
    if settings.metrics == "off" or not _from_this_machine(request):
        raise NotFoundException


def _from_this_machine(request: Request[Any, Any, Any]) -> bool:
    """A loopback address of its own, and no trace of a proxy that may speak for somebody else."""
    if request.client is None or any(name in request.headers for name in PROXY_HEADERS):
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:  # not an address: a socket of another kind
        return False


# ---- the worker ----


def worker_families(worker: Worker) -> list[Metric]:
    """What a worker knows of itself since it started."""
    observer = worker.observer
    outcomes, seconds = sorted(observer.outcomes.items()), sorted(observer.activity_ms.items())
    return [
        gauge("baton_worker_slots", "Workflows this worker runs at once", (), [((), worker.slots)]),
        gauge("baton_worker_slots_busy", "Workflows it runs now", (), [((), worker.busy)]),
        gauge("baton_worker_observer_queue", "Observations not yet written", (), [((), observer.depth)]),
        counter("baton_worker_observer_dropped_total", "Refused by a full queue", (), [((), observer.dropped)]),
        counter("baton_worker_observer_poisoned_total", "Could not be written", (), [((), observer.poisoned)]),
        counter("baton_step_calls_total", "Calls by how they ended", ("type", "step", "outcome"), outcomes),
        counter(
            "baton_step_seconds_total",
            "Time inside activities",
            ("type", "step"),
            [(labels, ms / 1000) for labels, ms in seconds],
        ),
    ]


async def serve_worker_metrics(settings: Settings, worker: Worker, stopping: asyncio.Event) -> None:
    """Answer `/metrics` on a port of its own until `stopping` is set. Raises ServerError if the port is taken."""
    registry = process_registry()

    async def render() -> bytes:
        return text_of(registry, worker_families(worker))

    app = Litestar([metrics_route(settings, render)], openapi_config=None, logging_config=None)
    await serve(app, settings.host, settings.metrics_port, stopping)
