"""Named moments before and after each durable write, where tests may crash, pause or fail a process.

`@boundary` sits on each method that makes one thing durable and registers `Store.complete_step:before` and `:after`.
Nothing is armed in production. `BATON_CRASH_AT=Store.complete_step:after` ends the process there with no clean-up.
"""

import os
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import wraps
from types import CoroutineType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Hook = Callable[[str], Awaitable[None]]

passing: ContextVar[str] = ContextVar("passing", default="")
"""The marked method that runs now, as `Store.complete_step`; kept only while a hook is armed."""

_points: dict[str, str] = {}  # moment: the module that it is in
_hook: Hook | None = None


def points(*packages: str) -> list[str]:
    """The registered moments of these packages and modules, or all, in the order of their definition."""
    wanted = tuple(f"{package}." for package in packages) or ("",)
    return [point for point, module in _points.items() if f"{module}.".startswith(wanted)]


def arm(hook: Hook | None) -> None:
    """Call `hook` with the name of each moment that is passed; None disarms."""
    global _hook
    _hook = hook


def boundary(method: "Callable[P, CoroutineType[Any, Any, R]]") -> "Callable[P, CoroutineType[Any, Any, R]]":
    """Mark a method that makes exactly one thing durable."""
    name = ".".join(method.__qualname__.split(".")[-2:])
    before, after = f"{name}:before", f"{name}:after"
    _points.update({before: method.__module__, after: method.__module__})

    @wraps(method)
    async def marked(*args: P.args, **kwargs: P.kwargs) -> R:
        if _hook is None:
            return await method(*args, **kwargs)
        await _hook(before)
        passing.set(name)
        result = await method(*args, **kwargs)
        await _hook(after)
        return result

    return marked


async def _end_process(wanted: str, passed: str) -> None:
    if passed == wanted:
        os._exit(137)


if _crash_at := os.environ.get("BATON_CRASH_AT"):
    from functools import partial

    arm(partial(_end_process, _crash_at))
