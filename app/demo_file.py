"""`demo.json`: where everything of a running demo is. A file under that name is always whole, and never a stale one."""

from pathlib import Path

import msgspec

from app.demo_accounts import Credentials, write_private
from app.settings import Suggested


class Process(msgspec.Struct, frozen=True):
    """One running process. `name` is also a worker's name in the operator's views; a worker has no port (0)."""

    name: str
    role: str
    pid: int
    port: int


class DemoFile(msgspec.Struct, frozen=True):
    """All of `demo.json`."""

    url: str
    user: Credentials
    users: list[Credentials]
    operator: Credentials
    streams: list[Suggested]
    processes: list[Process]

    def write(self, folder: Path) -> None:
        """Put it into the data folder by rename, readable by this user only: it holds passwords."""
        write_private(path_in(folder), msgspec.json.format(msgspec.json.encode(self), indent=2))


def path_in(folder: Path) -> Path:
    """Where the file of that data folder is."""
    return folder / "demo.json"
