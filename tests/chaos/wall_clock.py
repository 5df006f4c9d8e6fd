"""A wall clock that is wrong by hours, for the process that asks for it.

Everything in Python that reads the time of day goes through `time`, but for `datetime.now`, whose C code cannot be
replaced; the kernel asks it in one place. Monotonic time is left alone, as a wrong wall clock leaves it.
"""

import time
from datetime import datetime, timedelta, tzinfo

import kernel.clock


def shift(seconds: int) -> None:
    """Put this process's wall clock forward, or back."""
    true_time, true_time_ns = time.time, time.time_ns
    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: true_time_ns() + seconds * 1_000_000_000

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # pyright: ignore[reportIncompatibleMethodOverride]  (a plain datetime is what the callers store)
            return datetime.now(tz) + timedelta(seconds=seconds)

    kernel.clock.datetime = Wrong
