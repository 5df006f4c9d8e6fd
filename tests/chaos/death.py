"""How a process of the run ends: by itself at the n-th passing of a boundary, or hanging, and then it says where."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from kernel import faults

TELL = signal.SIGUSR1
"""Asks a process for the stacks of its tasks: for one that does not end when it should."""


def arm() -> None:
    """Do what the environment says: CHAOS_CRASH_AT names the boundary, CHAOS_CRASH_PASSING counts from 1."""
    point, left = os.environ.get("CHAOS_CRASH_AT", ""), int(os.environ.get("CHAOS_CRASH_PASSING") or 1)

    async def hook(passed: str) -> None:
        nonlocal left
        if passed == point:
            left -= 1
            if left == 0:
                os._exit(137)

    if point:
        faults.arm(hook)


def stopping_event() -> asyncio.Event:
    """Set by SIGTERM, in the running loop, which from now on also answers `TELL`."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_signal_handler(TELL, _tell)
    return stopping


def _tell() -> None:
    """Every task with the lines on which it, and whatever it awaits, stands."""
    for task in asyncio.all_tasks():
        print(task, *_places(task.get_coro()), sep="\n  ", file=sys.stderr, flush=True)


def _places(coroutine: Any) -> Iterator[str]:
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        yield f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        coroutine = coroutine.cr_await
    yield f"awaits {coroutine!r}"
