"""One claim as its holder sees it: the token, the instance as last committed, and how long the holder may act.

The deadline is kept on the local monotonic clock and counted from before the claiming write was sent, so that it
never lies behind the database's own. After it the holder does nothing any more.
"""

import asyncio
from datetime import datetime, timedelta
from time import monotonic

from kernel.definition import Plan
from kernel.errors import ClaimLost
from kernel.model import Instance


class Claim:
    """The right to execute one instance for a while."""

    def __init__(self, instance: Instance, plan: Plan, lease_s: float, sent_at: float) -> None:
        self.instance = instance
        self.plan = plan
        self.token = instance.claim_token
        self.lease_s = lease_s
        self.open = True  # until a write of ours ends the claim
        self.writing = asyncio.Lock()  # one state write at a time, so that `commit` tells whether the last one applied
        self._claimed = sent_at
        self._deadline = sent_at + lease_s

    def extend(self, sent_at: float) -> None:
        """A renewal sent at `sent_at` succeeded."""
        self._deadline = max(self._deadline, sent_at + self.lease_s)

    @property
    def seconds_left(self) -> float:
        """Until the lease may have run out."""
        return self._deadline - monotonic()

    def check(self) -> None:
        """Raise ClaimLost where the lease may have run out or the claim has ended."""
        if not self.open:
            raise ClaimLost("the claim has ended")
        if self.seconds_left <= 0:
            raise ClaimLost("the lease ran out before it could be renewed")

    def now(self) -> datetime:
        """Database time, carried on by the local monotonic clock since the claim."""
        claimed_at = self.instance.claimed_at or self.instance.updated_at
        return claimed_at + timedelta(seconds=monotonic() - self._claimed)
