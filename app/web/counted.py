"""What one process of the site counts about itself, for `/metrics`."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from litestar.types import Message, Scope
from prometheus_client import Counter, Gauge

from app.metrics import process_registry


class Counted:
    """Requests answered, and event streams that are open."""

    def __init__(self) -> None:
        self.registry = process_registry()
        labels = ("method", "route", "status")
        self._requests = Counter("baton_http_requests", "Requests answered", labels, registry=self.registry)
        self._readers = Gauge("baton_sse_readers", "Open event streams", registry=self.registry)

    def answered(self, message: Message, scope: Scope) -> None:
        """Count an answer when it begins. A route is named by its pattern, so that nobody's address is told."""
        if message["type"] == "http.response.start":
            route = scope.get("path_template") or "none"
            self._requests.labels(str(scope.get("method")), str(route), str(message["status"])).inc()

    async def read(self, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """The chunks; somebody reads them as long as they flow."""
        with self._readers.track_inprogress():
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
