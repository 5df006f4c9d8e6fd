"""One task after the other: claim it, keep its lease, store what is recognised, end it.

Whatever fails here, the lease runs out and another process goes on behind the last stored step.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic

from app.asr.audio import AudioRefused
from app.asr.model import SpeechModel
from app.asr.recognition import Recognition
from app.asr.run import Run
from app.asr.submissions import Submissions
from app.asr.tasks import STRIKES, AsrTasks, Failure, TaskClaim
from app.models import ModelMissing
from kernel.errors import ClaimLost, StoreUnavailable

RETRY_S = 0.5
GONE = Failure("audio_gone", "The submitted audio is no longer stored. Submit it again.", retryable=True)
DEADLY = Failure(
    "service_ended",
    f"The speech service ended {STRIKES} times while it worked on this audio, so it gave up.",
    retryable=False,
)
log = logging.getLogger(__name__)


class Slot:
    """Works on one task at a time. `bell` rings when a task may be waiting."""

    def __init__(self, tasks: AsrTasks, submissions: Submissions, model: SpeechModel, *, lease_s: float) -> None:
        self.bell = asyncio.Event()
        self._run: Run | None = None
        self._tasks = tasks
        self._submissions = submissions
        self._model = model
        self._period_s = lease_s / 3

    @property
    def inside_model(self) -> bool:
        """Whether a thread of this slot, abandoned or not, still runs."""
        return self._run is not None and self._run.alive

    async def work(self, stopping: asyncio.Event) -> None:
        """Until `stopping` is set; the task under way is then given back as far as it came."""
        ending = asyncio.create_task(stopping.wait())
        while not stopping.is_set():
            self.bell.clear()
            claim = await self._next()
            if claim is None:
                await self._rest(ending)
            else:
                await self._serve(claim, ending)
        ending.cancel()

    async def _next(self) -> TaskClaim | None:
        try:
            return await self._tasks.claim() if await self._model.ready() else None
        except StoreUnavailable as error:
            log.warning("cannot look for tasks: %s", error)
            return None

    async def _rest(self, ending: asyncio.Task[bool]) -> None:
        ringing = asyncio.create_task(self.bell.wait())
        await asyncio.wait({ringing, ending}, timeout=self._period_s, return_when=asyncio.FIRST_COMPLETED)
        ringing.cancel()

    async def _serve(self, claim: TaskClaim, ending: asyncio.Task[bool]) -> None:
        """Work on the task until it has ended, or its lease is lost, or the service stops."""
        working = asyncio.create_task(self._transcribe(claim))
        keeping = asyncio.create_task(self._keep(claim))
        done, _ = await asyncio.wait({working, keeping, ending}, return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        keeping.cancel()
        await asyncio.gather(working, keeping, return_exceptions=True)
        ended = working if working in done else keeping
        if ended not in done:
            await self._give_back(claim)
        elif reason := ended.exception():
            log.warning("task %s was left: %s", claim.task.task_id, reason)

    async def _keep(self, claim: TaskClaim) -> None:
        """Renew the lease. Ends by ClaimLost, when another process has it or when it may have."""
        while True:
            await asyncio.sleep(self._period_s)
            await self._insist(claim, lambda: self._tasks.renew(claim))

    async def _transcribe(self, claim: TaskClaim) -> None:
        """The task from its audio to its end."""
        try:
            failure = DEADLY if claim.task.strikes >= STRIKES else await self._recognise(claim)
        except ModelMissing:
            await self._give_back(claim)
        except StoreUnavailable:
            raise
        except Exception as error:
            await self._end(claim, _failure(claim, error))
        else:
            await self._end(claim, failure)

    async def _recognise(self, claim: TaskClaim) -> Failure | None:
        """Recognise what is not yet stored, storing every step; None when the text is whole."""
        task = claim.task
        data = await self._submissions.read(task.audio_id)
        if data is None:
            return GONE
        language = task.language or (None if task.wanted == "auto" else task.wanted)
        self._run = run = Run(Recognition(self._model.load, data, language, claim.settled).steps())
        try:
            async for step in run.steps():
                await self._insist(claim, lambda step=step: self._tasks.store_progress(claim, step))
        finally:
            run.abandon()
        return None

    async def _end(self, claim: TaskClaim, failure: Failure | None) -> None:
        await self._insist(
            claim, lambda: self._tasks.complete(claim) if failure is None else self._tasks.fail(claim, failure)
        )
        log.info("task %s %s", claim.task.task_id, "completed" if failure is None else f"failed: {failure.code}")
        with suppress(StoreUnavailable):  # swept later
            await self._submissions.remove(claim.task.audio_id)

    async def _give_back(self, claim: TaskClaim) -> None:
        with suppress(StoreUnavailable, ClaimLost):
            await self._tasks.give_back(claim)

    async def _insist(self, claim: TaskClaim, write: Callable[[], Awaitable[None]]) -> None:
        """Repeat a write over faults of the database, as long as the lease is surely ours."""
        while True:
            try:
                return await write()
            except StoreUnavailable as error:
                if monotonic() + RETRY_S >= claim.expires:
                    raise ClaimLost(
                        f"The lease of {claim.task.task_id} ran out while the database was away."
                    ) from error
            await asyncio.sleep(RETRY_S)


def _failure(claim: TaskClaim, error: Exception) -> Failure:
    if isinstance(error, AudioRefused):
        return Failure(error.code, str(error), retryable=False)
    log.error("task %s failed", claim.task.task_id, exc_info=error)
    return Failure(
        "internal_error", f"The speech service failed on this audio ({type(error).__name__}).", retryable=True
    )
