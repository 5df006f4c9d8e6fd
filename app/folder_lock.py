"""One run per data folder. The lock is the kernel's: it goes when its last holder dies, and leaves nothing to clean up.

The servers of a run inherit the lock's descriptor, so the folder counts as taken until the last of them has ended.
"""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from app.binaries import ServerError

PATIENCE_S = 3.0
"""How long servers of a run that was killed just now may take to vanish."""


class FolderInUse(ServerError):
    """Another run works with this data folder."""


class FolderLock:
    """A context manager: entering makes and takes the folder, or raises FolderInUse or another ServerError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fd = -1

    def __enter__(self) -> "FolderLock":
        self.fd = self._opened()
        deadline = time.monotonic() + PATIENCE_S
        while not self._taken():
            if time.monotonic() > deadline:
                holder = os.pread(self.fd, 100, 0).decode(errors="replace").strip()
                self.release()
                raise FolderInUse(self._message(holder))
            time.sleep(0.05)
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, str(os.getpid()).encode(), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _opened(self) -> int:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ServerError(
                f"The data folder {self.folder} cannot be used: {error.strerror}. Set BATON_DATA_DIR to another."
            ) from error

    def release(self) -> None:
        """Close this process's descriptor."""
        os.close(self.fd)

    def _taken(self) -> bool:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _message(self, holder: str) -> str:
        by = f"process {holder}" if holder else "another process"
        return (
            f"The data folder {self.folder.resolve()} is in use by another running Baton ({by}). "
            "Stop that one first, or set BATON_DATA_DIR to another folder."
        )
