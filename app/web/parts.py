"""What the web needs from the rest, in one record that `app.wiring` fills. Nothing here opens a connection."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from litestar.connection import ASGIConnection, Request
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from app.accounts import Accounts, User
from app.acts import AuditEntry
from app.settings import Settings
from app.stream_hooks import StreamHooks
from app.subscriptions import Subscriptions
from app.throttle import Throttle
from app.web.counted import Counted
from kernel.lanes import Lanes
from kernel.limits import PermitLimits
from kernel.model import Signal
from kernel.permits import Permits
from kernel.projections import Projections
from kernel.stream import ClientStreams

Act = Literal["supersede", "retry", "release", "repair"]
Probe = Callable[[], Awaitable[None]]
"""Asks one part whether it works; raises when it does not."""


class Recordings(Protocol):
    """Packaged recordings, readable from any byte."""

    async def size(self, media_id: str) -> int:
        """Size in bytes."""
        ...

    def open_range(self, media_id: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not including, `end`, in pieces."""
        ...


class Uploads(Protocol):
    """Files as people upload them."""

    async def store(self, media_id: str, pieces: AsyncIterator[bytes]) -> int:
        """Store a file under its address; it is there once all of it is. Returns its size in bytes."""
        ...


class OperatorAct(Protocol):
    """One act of an operator through the business service. True when something changed; it keeps the audit entry."""

    async def __call__(self, workflow_id: str, reason: str, operator: str, from_step: str | None = None) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebParts:
    """Everything the web app uses. `acts` holds the operator's acts that exist; the others have no route."""

    settings: Settings
    secret: str
    """Signs cookies; never empty."""
    accounts: Accounts
    sign_ins: Throttle
    """How often a name may be tried with a password."""
    subscriptions: Subscriptions
    hooks: StreamHooks
    streams: ClientStreams
    recordings: Recordings
    uploads: Uploads
    projections: Projections
    lanes: Lanes
    permits: Permits
    permit_limits: PermitLimits
    probes: Mapping[str, Probe]
    """`mongo`, `redis`, `asr`, `writer`."""
    acts: Mapping[Act, OperatorAct]
    audit: Callable[[str], Awaitable[list[AuditEntry]]]
    """What operators did to a workflow, the latest first."""
    signals: Callable[[str, int], Awaitable[list[Signal]]]
    """What was sent to a workflow, the latest first, at most so many."""
    related: Callable[[Mapping[str, Any]], Awaitable[list[dict[str, Any]]]]
    """Snapshots of the workflows that belong to the same session as that of a snapshot."""
    speech_tasks: Callable[[], Awaitable[dict[str, int]]]
    """How many tasks of our speech service are queued and running."""
    counted: Counted = field(default_factory=Counted)
    """What this process counts about itself."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is asked to stop; every open event stream ends then."""


Parts = NamedDependency[SkipValidation[WebParts]]
"""A route's parameter named `parts`."""


def parts_of(connection: ASGIConnection[Any, Any, Any, State]) -> WebParts:
    """The parts of the application that answers this connection."""
    return connection.app.state["parts"]


SignedIn = Request[User, None, State]
"""A request behind the guard `signed_in`: `request.user` is the person."""
