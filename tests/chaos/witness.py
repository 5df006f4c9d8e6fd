"""Permits that write down what they granted and for how long that was certainly so, by Valkey's own clock.

A holder knows that it stood in Valkey's books from its grant to the sending of a later call that succeeded, as long as
no two calls lie a lease apart. Only such intervals are noted: too many at once is then a fault and never a suspicion.
"""

from dataclasses import dataclass
from time import monotonic
from typing import Any

from pymongo.errors import PyMongoError

from kernel import Clock, Limits
from kernel.driver import Database
from kernel.permits import Grant, Permits, Refusal


@dataclass
class Place:
    """A place held: Valkey's time of the grant, and our monotonic one of its answer and of the last certain call."""

    granted_at_ms: int
    answered_at: float
    certain_until: float
    unbroken: bool = True

    def confirm(self, sent_at: float, answered_at: float, lease_s: float) -> None:
        """A later call found the place still ours."""
        self.unbroken = self.unbroken and answered_at - self.certain_until <= lease_s
        if self.unbroken:
            self.certain_until = sent_at

    def until_ms(self, more_s: float = 0.0) -> int:
        """Valkey's time until which the place was certainly held."""
        certain_s = max(self.certain_until - self.answered_at, 0.0)
        return self.granted_at_ms + round((certain_s + (more_s if self.unbroken else 0.0)) * 1000)


class WitnessedPermits(Permits):
    """Permits whose grants and intervals go to the collection `grants`, as far as MongoDB takes them."""

    def __init__(self, redis: Any, prefix: str, clock: Clock, lease_s: float, database: Database) -> None:
        super().__init__(redis, prefix, clock, lease_s)
        self._lease_s = lease_s
        self._grants = database["grants"]
        self._places: dict[tuple[str, str, str], Place] = {}

    async def acquire(self, resource: str, owner: str, token: str, limits: Limits) -> Grant | Refusal:
        sent_at = monotonic()
        answer = await super().acquire(resource, owner, token, limits)
        if isinstance(answer, Grant):
            self._places[(resource, owner, token)] = Place(answer.granted_at_ms, monotonic(), sent_at)
            if answer.started:
                await self._note({"kind": "start", "resource": resource, "owner": owner, "at_ms": answer.granted_at_ms})
        return answer

    async def renew(self, resource: str, owner: str, token: str, until_s: float | None = None) -> bool:
        sent_at = monotonic()
        renewed = await super().renew(resource, owner, token, until_s)
        self._confirm((resource, owner, token), renewed, sent_at)
        if until_s is not None:
            await self._close((resource, owner, token), until_s if renewed else 0.0)
        return renewed

    async def release(self, resource: str, owner: str, token: str) -> bool:
        sent_at, released = monotonic(), False
        try:
            released = await super().release(resource, owner, token)
            self._confirm((resource, owner, token), released, sent_at)
        finally:
            await self._close((resource, owner, token), 0.0)
        return released

    def _confirm(self, key: tuple[str, str, str], held: bool, sent_at: float) -> None:
        place = self._places.get(key)
        if place is not None and held:
            place.confirm(sent_at, monotonic(), self._lease_s)

    async def _close(self, key: tuple[str, str, str], more_s: float) -> None:
        place = self._places.pop(key, None)
        if place is not None:
            span = {"from_ms": place.granted_at_ms, "to_ms": place.until_ms(more_s)}
            await self._note({"kind": "held", "resource": key[0], "owner": key[1], **span})

    async def _note(self, grant: dict[str, Any]) -> None:
        """What cannot be written is missing: fewer grants are seen, none is invented."""
        try:
            await self._grants.insert_one(grant)
        except PyMongoError:
            return
