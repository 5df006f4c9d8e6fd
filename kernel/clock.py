"""The only place that asks for the time. Durable times are the database's; only tests set an offset.

With an offset every database time the kernel writes or compares is shifted by it, so that an hour's wait passes in
milliseconds on a real MongoDB and a real Redis.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any


@dataclass(slots=True)
class Clock:
    """Time for one set of stores. `offset_ms` is 0 outside tests."""

    offset_ms: int = 0

    def advance(self, by: timedelta) -> None:
        """Let time pass (tests only)."""
        self.offset_ms += int(by.total_seconds() * 1000)

    @property
    def now(self) -> Any:
        """Aggregation expression: the database's time now."""
        return {"$add": ["$$NOW", self.offset_ms]} if self.offset_ms else "$$NOW"

    def after(self, seconds: float) -> Any:
        """Aggregation expression: `seconds` from the database's now."""
        return {"$add": ["$$NOW", self.offset_ms + round(seconds * 1000)]}

    def hint(self, seconds: float) -> datetime:
        """About `seconds` from now by this process's own clock: for hints only, never for a durable record."""
        return datetime.now(UTC) + timedelta(seconds=seconds, milliseconds=self.offset_ms)
