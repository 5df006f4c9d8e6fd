"""A recognition in a thread of its own, heard from the event loop.

The thread cannot be interrupted inside the model, only abandoned: what it still finds then reaches nobody.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

from app.asr.recognition import Step


class Run:
    """Starts at once. Must be made inside a running loop."""

    def __init__(self, steps: Iterator[Step]) -> None:
        self._steps = steps
        self._loop = asyncio.get_running_loop()
        self._found: asyncio.Queue[Step | Exception | None] = asyncio.Queue()
        self._abandoned = threading.Event()
        self._thread = threading.Thread(target=self._work, name="recognition", daemon=True)
        self._thread.start()

    async def steps(self) -> AsyncIterator[Step]:
        """The steps as they are found; raises what the thread raised."""
        while (found := await self._found.get()) is not None:
            if isinstance(found, Exception):
                raise found
            yield found

    def abandon(self) -> None:
        """Let the thread end at its next step."""
        self._abandoned.set()

    @property
    def alive(self) -> bool:
        """Whether the thread is still in the model."""
        return self._thread.is_alive()

    def _work(self) -> None:
        try:
            for step in self._steps:
                if self._abandoned.is_set():
                    return
                self._tell(step)
            self._tell(None)
        except Exception as error:  # all of them: the loop decides what each means
            self._tell(error)

    def _tell(self, found: Step | Exception | None) -> None:
        if not self._abandoned.is_set():
            with suppress(RuntimeError):  # the loop has been closed: the process is ending
                self._loop.call_soon_threadsafe(self._found.put_nowait, found)
