"""Where a process spends its CPU: cProfile in every thread, on its own CPU clock, so that waiting costs nothing."""

import cProfile
import pstats
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GROUPS = (
    "kernel",
    "activities",
    "tests",
    "motor",
    "pymongo",
    "bson",
    "gridfs",
    "redis",
    "msgspec",
    "asyncio",
    "concurrent",
)
TOP = 25


@contextmanager
def into(file: str) -> Iterator[None]:
    """Profile the block into this file; without a name just run it."""
    if not file:
        yield
        return
    profiles: list[cProfile.Profile] = []

    def begin(*_: object) -> None:
        """The first event of a new thread."""
        profiles.append(cProfile.Profile(time.thread_time))
        profiles[-1].enable()

    threading.setprofile(begin)
    begin()
    try:
        yield
    finally:
        profiles[0].disable()
        threading.setprofile(None)
        stats = pstats.Stats(profiles[0])
        for other in profiles[1:]:
            stats.add(other)
        stats.dump_stats(file)


def summary(file: Path) -> list[str]:
    """Shares by package, and the functions that cost most themselves."""
    found = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
    groups: dict[str, float] = defaultdict(float)
    rows: list[tuple[float, int, str]] = []
    for (path, line, name), (_, calls, own_s, _, _) in found.items():
        groups[_group(path, name)] += own_s
        rows.append((own_s, calls, f"{_short(path)}:{line} {name}" if line else name))
    whole = sum(groups.values()) or 1.0
    lines = [f"{own_s / whole:6.1%}  {group}" for group, own_s in sorted(groups.items(), key=lambda one: -one[1])]
    lines.append("")
    for own_s, calls, name in sorted(rows, reverse=True)[:TOP]:
        lines.append(f"{own_s / whole:6.1%} {calls:9,}  {name}")
    return lines


def _group(path: str, name: str) -> str:
    parts = Path(path).parts
    for group in GROUPS:
        if group in parts or group in name:
            return group
    return "built-in" if path == "~" else "standard library and others"


def _short(path: str) -> str:
    return "/".join(Path(path).parts[-2:])
