"""The permits that one claim holds: taken before a call, renewed with the lease, given back when the step lets go."""

import logging
from collections.abc import Awaitable

from kernel.claims import Claim
from kernel.definition import Definition, Step
from kernel.errors import BrokerUnavailable
from kernel.hints import Hints
from kernel.limits import PermitLimits
from kernel.permits import Grant, Permits, Refusal

log = logging.getLogger(__name__)


class Holds:
    """Permits of a claim. Without Redis none is granted: the limits protect somebody else's service."""

    def __init__(
        self, claim: Claim, definition: Definition, permits: Permits, limits: PermitLimits, hints: Hints
    ) -> None:
        self._claim = claim
        self._definition = definition
        self._permits = permits
        self._limits = limits
        self._hints = hints
        self._held: set[tuple[str, str]] = set()  # (resource, owner)

    async def take(self, step: Step) -> Refusal | None:
        """Take what the step needs; the refusal where it is not to be had, and then nothing is kept."""
        for resource in self._resources(step):
            owner = self._owner(step)
            limits = await self._limits.of(resource)
            answer = await self._permits.acquire(resource, owner, self._claim.token, limits)
            if not isinstance(answer, Grant):
                await self.give_back(step)
                return answer
            self._held.add((resource, owner))
        return None

    async def renew(self) -> None:
        """Extend every permit held; called with each renewal of the lease."""
        for resource, owner in list(self._held):
            await self._try(self._permits.renew(resource, owner, self._claim.token))

    async def keep(self, step: Step, seconds: float) -> None:
        """Leave the permit with the step's external task for `seconds` and a lease more."""
        for resource, owner in self._of(step):
            await self._try(self._permits.renew(resource, owner, self._claim.token, seconds))
            self._held.discard((resource, owner))

    async def give_back(self, step: Step) -> None:
        """Release what the step holds, and wake those who wait for it."""
        for resource, owner in self._of(step):
            self._held.discard((resource, owner))
            await self._try(self._permits.release(resource, owner, self._claim.token))
            await self._hints.wake()

    def _resources(self, step: Step) -> list[str]:
        tenant = self._definition.tenant_resource
        per_tenant = [tenant(self._claim.instance.input)] if tenant else []
        return per_tenant + ([step.resource] if step.resource else [])

    def _owner(self, step: Step) -> str:
        return f"{self._claim.instance.workflow_id}/{step.name}"

    def _of(self, step: Step) -> list[tuple[str, str]]:
        owner = self._owner(step)
        return [held for held in self._held if held[1] == owner]

    async def _try(self, call: Awaitable[object]) -> None:
        try:
            await call
        except BrokerUnavailable as error:
            log.debug("a permit is left to its lease: %s", error)
