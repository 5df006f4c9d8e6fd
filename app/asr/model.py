"""The process's one speech model: its files are found and checked first, and it is loaded when the first speech comes.

While it cannot be used, `problem` says why in words for people; tasks then wait, and new ones are refused.
"""

import asyncio
import logging
import threading

from app.asr.whisper import Whisper
from app.models import ModelMissing, model_folder
from app.settings import Settings

THREADS = 2
log = logging.getLogger(__name__)


class SpeechModel:
    """Safe to use from several threads."""

    def __init__(self, settings: Settings, *, parallel: int = 1) -> None:
        self.name = settings.asr_model
        self.problem: str | None = "The speech model has not been looked for yet."
        self._settings = settings
        self._parallel = parallel
        self._lock = threading.Lock()
        self._loaded: Whisper | None = None
        self._broken = False

    async def ready(self) -> bool:
        """Look again whether the model can be used; a problem that has been repaired is gone."""
        if self.problem is not None:
            await asyncio.to_thread(self._look)
        return self.problem is None

    def load(self) -> Whisper:
        """The model. Blocking; raises ModelMissing."""
        with self._lock:
            try:
                self._loaded = self._loaded or self._open()
            except ModelMissing as error:
                self._tell(str(error))
                raise
            self._broken, self.problem = False, None
            return self._loaded

    def _look(self) -> None:
        """Files that could not be loaded are only believed again when they can be."""
        with self._lock:
            try:
                if self._broken:
                    self._loaded = self._open()
                elif self.problem is not None:
                    model_folder(self._settings)
            except ModelMissing as error:
                self._tell(str(error))
            else:
                self._broken, self.problem = False, None

    def _open(self) -> Whisper:
        folder = model_folder(self._settings)
        try:
            return Whisper(folder, threads=THREADS, parallel=self._parallel)
        except Exception as error:  # whatever the libraries raise for files they cannot use
            self._broken = True
            raise ModelMissing(f"The speech model {self.name!r} cannot be loaded: {error}") from error

    def _tell(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem
