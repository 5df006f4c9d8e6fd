"""Notices changed source files, for development: `baton demo --reload`."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

WATCHED = ("app", "kernel", "activities", "frontend")
SUFFIXES = {".py", ".lua", ".html", ".js", ".css"}
LOOK_EVERY_S = 1.0


async def source_changes(root: Path = Path(__file__).parents[1]) -> AsyncIterator[Path]:
    """The path of a changed, new or removed source file, each time there is one; never ends."""
    known = await asyncio.to_thread(_times, root)
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        now = await asyncio.to_thread(_times, root)
        changed = sorted(path for path, _ in known.items() ^ now.items())
        known = now
        if changed:
            yield changed[0]


def _times(root: Path) -> dict[Path, int]:
    files = (path for name in WATCHED for path in (root / name).rglob("*") if path.suffix in SUFFIXES)
    return {path: path.stat().st_mtime_ns for path in files if path.is_file()}
