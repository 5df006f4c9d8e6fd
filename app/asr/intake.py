"""Takes submissions in: one task per idempotency key, its audio stored before the task refers to it."""

import re
from collections.abc import AsyncIterator, Callable

from app.asr.model import SpeechModel
from app.asr.submissions import Submissions
from app.asr.tasks import AsrTask, AsrTasks, task_id_of

LONGEST_KEY = 200
_LANGUAGE = re.compile(r"auto|[a-z]{2,3}")


class Refused(Exception):
    """A request that is not taken: status and stable code for programs, the text for people."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class Intake:
    """Where tasks come in and are asked for. `ring` tells the slots that one is waiting."""

    def __init__(
        self, tasks: AsrTasks, submissions: Submissions, model: SpeechModel, ring: Callable[[], object]
    ) -> None:
        self._tasks = tasks
        self._submissions = submissions
        self._model = model
        self._ring = ring

    async def submit(self, key: str, language: str, pieces: AsyncIterator[bytes]) -> tuple[AsrTask, bool]:
        """The key's task, and whether it is new. A task that failed for a passing reason is started again.

        Raises Refused, also for as long as the model cannot be used.
        """
        _check(key, language)
        task_id = task_id_of(key)
        known = await self._tasks.find(task_id)
        if known is not None and not _may_restart(known):
            async for _ in pieces:  # the client has to get rid of its body before it reads the answer
                pass
            return known, False
        if not await self._model.ready():
            raise Refused(503, "model_missing", self._model.problem or "The speech model cannot be used.")
        audio_id = await self._store(pieces)
        task = await self._register(task_id, language, audio_id)
        if task.audio_id != audio_id:
            await self._submissions.remove(audio_id)
        self._ring()
        return task, known is None and task.audio_id == audio_id

    async def find(self, task_id: str) -> AsrTask:
        """The task. Raises Refused if there is none."""
        task = await self._tasks.find(task_id)
        if task is None:
            raise Refused(404, "not_found", f"There is no task {task_id!r}. Submit the audio again.")
        return task

    async def _store(self, pieces: AsyncIterator[bytes]) -> str:
        audio_id, size = await self._submissions.store(pieces)
        if size == 0:
            await self._submissions.remove(audio_id)
            raise Refused(422, "empty_audio", "The request has no body. Send the audio file's bytes.")
        return audio_id

    async def _register(self, task_id: str, language: str, audio_id: str) -> AsrTask:
        """The task as it is after ours or another request with the same key made it or started it again."""
        task = await self._tasks.create(task_id, language, audio_id)
        if _may_restart(task) and await self._tasks.revive(task_id, language, audio_id):
            return await self.find(task_id)
        return task


def _may_restart(task: AsrTask) -> bool:
    return task.failure is not None and task.failure.retryable


def _check(key: str, language: str) -> None:
    if not 1 <= len(key) <= LONGEST_KEY:
        raise Refused(422, "bad_key", f"The header Idempotency-Key must hold 1 to {LONGEST_KEY} characters.")
    if not _LANGUAGE.fullmatch(language):
        raise Refused(
            422, "bad_language", f"language={language!r} is neither `auto` nor a language code such as `en` or `zh`."
        )
