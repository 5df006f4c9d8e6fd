"""Waiting for what another process does to files and sockets, which nobody announces."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 60


def until(found: Callable[[], Any]) -> Any:
    """The first true result of `found`."""
    deadline = time.monotonic() + PATIENCE_S
    while not (result := found()):
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s"
        time.sleep(0.02)
    return result
