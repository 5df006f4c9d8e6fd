"""The kernel's own parts, opened once per process over one database and one Redis."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.commits import Commits
from kernel.definition import Plan
from kernel.driver import Database
from kernel.hints import Hints
from kernel.inbox import Inbox
from kernel.instances import Instances
from kernel.lanes import Lanes
from kernel.limits import PermitLimits
from kernel.permits import Limits, Permits
from kernel.publisher import Publisher
from kernel.store import Store
from kernel.stream import ClientStreams
from kernel.wakeups import Wakeups


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that publishers and workers share in a process."""

    clock: Clock
    instances: Instances
    store: Store
    inbox: Inbox
    lanes: Lanes
    permits: Permits
    limits: PermitLimits
    wakeups: Wakeups
    streams: ClientStreams
    hints: Hints
    publisher: Publisher

    async def ensure_indexes(self) -> None:
        """Create what the kernel's queries run on; repeating it is free."""
        await self.instances.ensure_indexes()
        await self.inbox.ensure_indexes()


def open_parts(
    database: Database,
    redis: Redis,
    plans: Iterable[Plan],
    *,
    prefix: str,
    clock: Clock | None = None,
    permit_lease_s: float = 30.0,
    limits: Mapping[str, Limits] | None = None,
) -> Parts:
    """Join the parts over one database and one Redis; nothing is connected yet."""
    clock = clock or Clock()
    commits = Commits(database["workflow_instances"])
    instances, inbox = Instances(database, commits, clock), Inbox(database, clock)
    lanes, wakeups = Lanes(redis, prefix, clock), Wakeups(redis, prefix)
    streams, hints = ClientStreams(redis, prefix, clock), Hints(lanes, wakeups)
    return Parts(
        clock=clock,
        instances=instances,
        store=Store(database, commits, clock),
        inbox=inbox,
        lanes=lanes,
        permits=Permits(redis, prefix, clock, permit_lease_s),
        limits=PermitLimits(database, clock, limits or {}),
        wakeups=wakeups,
        streams=streams,
        hints=hints,
        publisher=Publisher(instances, inbox, hints, streams, plans),
    )
