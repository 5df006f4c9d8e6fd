"""Permits: how many calls of a downstream resource are in flight, and how many begin per second, over all workers.

One script checks both limits and takes both or neither. A place belongs to `workflow_id/step`, is held under the claim
token, and comes back by itself when its lease ends. Who is not certain to have a permit has none: a Redis that does
not answer refuses.
"""

import logging
import random
from typing import Literal

import msgspec
from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.errors import BrokerUnavailable
from kernel.scripts import Script

SOONEST_S, LATEST_S = 0.5, 15.0
"""Bounds of a refusal's `retry_in_s`."""

JITTER = 0.2
"""A refused step comes back up to this part later than advised, so that they do not come back together."""

PATIENCE_S = 60.0
"""A refused owner that has not asked again for so long no longer counts as waiting."""

_log = logging.getLogger(__name__)


class Limits(msgspec.Struct, frozen=True):
    """What a resource bears; 0 switches a limit off.

    In any half-open window of one second (of `1 / max_starts_per_second` seconds when that is below 1) at most
    `max_starts_per_second` rounded down, and at least one, may start, by the Redis server's clock.
    """

    max_concurrency: int = 0
    max_starts_per_second: float = 0.0


class Grant(msgspec.Struct, frozen=True):
    """The permit is held. `started`: it took a new start; False for a renewal or a takeover by a new claim.

    `granted_at_ms` is the Redis server's clock, in milliseconds since 1970.
    """

    granted_at_ms: int
    started: bool


class Refusal(msgspec.Struct, frozen=True):
    """Not now. Ask again in `retry_in_s` seconds (0.5 to 15); `ahead` others have been waiting for longer."""

    retry_in_s: float
    reason: Literal["limit", "unreachable"]
    ahead: int = 0


class PermitFigures(msgspec.Struct, frozen=True):
    """One resource at one moment: places held, starts within the last second, owners refused and still asking."""

    in_use: int
    starts_last_second: int
    waiting: int


class Permits:
    """The permits of all resources under one key prefix, each held for `lease_s` at a time.

    `owner` is `workflow_id/step`, `token` the claim token. Limits come with each acquire, so a changed one counts at
    once; a lowered one takes nothing from those who hold a place.
    """

    def __init__(self, redis: Redis, prefix: str, clock: Clock, lease_s: float) -> None:
        self._prefix, self._clock = prefix, clock
        self._lease_ms = round(lease_s * 1000)
        # Few and small, and nothing else can stand in for them: without, a full Redis would stop speech and writing.
        self._acquire = Script(redis, "permit_acquire", when_full=True)
        self._renew = Script(redis, "permit_renew", when_full=True)
        self._release = Script(redis, "permit_release", when_full=True)
        self._figures = Script(redis, "permit_figures")

    async def acquire(self, resource: str, owner: str, token: str, limits: Limits) -> Grant | Refusal:
        """Take a place and a start, or neither; never raises for a Redis fault.

        Asking again with the same token renews the lease; with a new one it takes over this owner's place. Neither is a
        new start, and neither is ever refused.
        """
        keys = self._keys(resource, "held", "tokens", "starts", "released", "waiting", "asked")
        bounds = limits.max_concurrency, limits.max_starts_per_second, round(PATIENCE_S * 1000)
        try:
            granted, at_or_wait_ms, detail = await self._acquire(keys, *self._lease(owner, token), *bounds)
        except BrokerUnavailable as error:
            _log.warning("No permit for %s: %s", resource, error)
            return Refusal(_retry_in_s(random.uniform(1.0, 3.0)), "unreachable")
        if granted:
            return Grant(at_or_wait_ms, bool(detail))
        return Refusal(_retry_in_s(at_or_wait_ms / 1000), "limit", detail)

    async def renew(self, resource: str, owner: str, token: str, until_s: float | None = None) -> bool:
        """Hold on for another lease; with `until_s`, for that many seconds and a lease on top. Never shortens.

        False: another claim has taken the place over, or this one released it. A place that Redis has lost is entered
        again whatever the limits say, because its holder is in flight all the same. Raises BrokerUnavailable.
        """
        keys = self._keys(resource, "held", "tokens", "released")
        return bool(await self._renew(keys, *self._lease(owner, token), round((until_s or 0.0) * 1000)))

    async def release(self, resource: str, owner: str, token: str) -> bool:
        """Give the place back. True: it is free now, and a waiting worker deserves a wake-up.

        Raises BrokerUnavailable; the lease then gives it back.
        """
        keys = self._keys(resource, "held", "tokens", "released")
        return bool(await self._release(keys, *self._lease(owner, token)))

    async def figures(self, resource: str) -> PermitFigures:
        """What an operator sees of a resource. Raises BrokerUnavailable."""
        keys = self._keys(resource, "held", "starts", "asked")
        return PermitFigures(*await self._figures(keys, self._clock.offset_ms, round(PATIENCE_S * 1000)))

    def _keys(self, resource: str, *parts: str) -> list[str]:
        return [f"{{{self._prefix}:permit:{resource}}}:{part}" for part in parts]

    def _lease(self, owner: str, token: str) -> tuple[int, int, str, str]:
        return self._clock.offset_ms, self._lease_ms, owner, token


def _retry_in_s(advised_s: float) -> float:
    later_s = advised_s * (1 + JITTER * random.random())
    return min(LATEST_S, max(SOONEST_S, later_s))
