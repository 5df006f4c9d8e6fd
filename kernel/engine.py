"""The life of one claim: begin, run waves of ready steps, and end it, failed, finished or suspended.

The engine interprets definitions; what is durable happens in `Store`, one conditional write after the other, so
that the process may end between any two lines here and the next claim goes on from what was committed.
"""

import asyncio
import logging
from random import uniform
from time import monotonic
from typing import Any

from kernel.claims import Claim
from kernel.definition import Definition, Finalizer, Step
from kernel.directives import Outcome, Sleep, StepContext, WaitForSignal, WorkflowContext, Yield
from kernel.errors import ClaimLost, StaleRound, StoreUnavailable
from kernel.failures import FINALIZER_BACKOFF, FINALIZER_TRIES, described, verdict
from kernel.heartbeat import kept_alive
from kernel.holds import Holds
from kernel.inbox import matching
from kernel.invoke import invoke
from kernel.log_fields import logged_with
from kernel.model import DONE, Resume, Status, StepStatus
from kernel.observation import Observer
from kernel.outputs import checked_checkpoint, checked_output
from kernel.parts import Parts
from kernel.ready import all_done, failed_step, open_steps, ready_steps, waiting_steps
from kernel.stream import StreamKey
from kernel.tasks import end
from kernel.writes import is_transient

log = logging.getLogger(__name__)
FINALIZER_TIMEOUT_S = 60.0


class Execution:
    """One claim being executed."""

    def __init__(self, claim: Claim, definition: Definition, parts: Parts, observer: Observer) -> None:
        self.claim = claim
        self._definition = definition
        self._parts = parts
        self.observer = observer
        self._store = parts.store
        self._holds = Holds(claim, definition, parts.permits, parts.limits, parts.hints)
        self._stopping = False
        self._entered = False  # whether business code was entered under this claim
        self._started_ahead: str | None = None  # the step whose start is committed: with the claim, or its predecessor

    def stop(self) -> None:
        """Give the claim back after the step that runs now."""
        self._stopping = True

    async def run(self) -> None:
        """Carry the instance as far as it goes under this claim. Never raises but for cancellation."""
        instance = self.claim.instance
        with logged_with(workflow_id=instance.workflow_id, biz_key=instance.biz_key, worker=self.observer.worker):
            await self._run()

    async def _run(self) -> None:
        try:
            async with kept_alive(self.claim, self._store, self._holds.renew):
                await self._begin()
                while self.claim.open:
                    await self._turn()
        except ClaimLost as lost:
            log.info("%s: %s", self.claim.instance.biz_key, lost)
        except StoreUnavailable as error:
            log.warning("%s is left to its lease: %s", self.claim.instance.biz_key, error)
        else:
            await self._after_claim()

    # ---- the beginning ----

    async def _begin(self) -> None:
        """Settle what earlier claims and crashes left: consumed signals, dead attempts, steps whose time has come."""
        instance = self.claim.instance
        for name in instance.step_order:
            step = instance.steps[name]
            if step.status in (StepStatus.PENDING, StepStatus.RUNNING) and step.resume and step.resume.kind == "signal":
                await self._parts.inbox.mark_matched(step.resume.signal_id)
            if step.status is StepStatus.RUNNING and step.started_at == instance.claimed_at:
                self._started_ahead = name
                self.observer.started(instance, name, instance)
            elif step.status is StepStatus.RUNNING:
                self.observer.abandoned(instance, name)
        if waiting_steps(instance) and instance.status is Status.RUNNING:
            await self._wake_own_steps()

    async def _wake_own_steps(self) -> None:
        claim, now = self.claim, self.claim.now()
        for name in waiting_steps(claim.instance):
            step = claim.instance.steps[name]
            if step.due is not None and step.due <= now:
                kind = "timer" if step.wait and step.wait.kind == "timer" else "poll"
                await self._store.wake_step(claim, name, Resume(kind))
        signals = await self._parts.inbox.unmatched([claim.instance.workflow_id])
        for name, _, signal in matching(claim.instance, signals):
            await self._store.wake_step(claim, name, Resume("signal", signal.signal_id))
            await self._parts.inbox.mark_matched(signal.signal_id)

    # ---- one turn ----

    async def _turn(self) -> None:
        instance = self.claim.instance
        if instance.status is Status.FAILING:
            return await self._fail()
        if (name := failed_step(instance)) is not None:
            return await self._begin_failing(f"{name}: {instance.steps[name].error}")
        if all_done(instance):
            return await self._succeed()
        wave = ready_steps(instance, self._definition.plan, self.claim.now())
        if not wave or (self._stopping and self._started_ahead is None):
            return await self._store.end_claim(self.claim)
        return await self._run_wave([self._definition.step(name) for name in wave])

    async def _run_wave(self, wave: list[Step]) -> None:
        alone = len(open_steps(self.claim.instance, self._definition.plan)) == 1
        if len(wave) == 1:
            await self._run_step(wave[0], alone)
        else:
            await self._run_together(wave)
        self._entered = True

    async def _run_together(self, wave: list[Step]) -> None:
        """Each step commits for itself; one that loses the claim ends the others."""
        tasks = [asyncio.create_task(self._run_step(step, False)) for step in wave]
        try:
            await asyncio.gather(*tasks)
        finally:
            await end(*tasks)

    async def _run_step(self, step: Step, alone: bool) -> None:
        """One entry into business code and its commit. `alone`: a directive may end the claim in the same update."""
        refusal = await self._holds.take(step)
        if refusal is not None:
            await self._store.defer_step(self.claim, step.name, refusal.retry_in_s, refusal.reason, ends=alone)
            return self.observer.moved(self.claim.instance)
        try:
            await self._enter(step, alone)
        finally:
            await self._holds.give_back(step)

    async def _enter(self, step: Step, alone: bool) -> None:
        if self._started_ahead == step.name:
            self.claim.check()  # nothing was written just now that would have told that the claim is lost
        else:
            before = None if self._entered else self.claim.instance
            await self._store.start_step(self.claim, step.name)
            self.observer.started(self.claim.instance, step.name, before)
        self._started_ahead = None
        with logged_with(step=step.name, attempt=self.claim.instance.steps[step.name].attempt):
            await self._call(step, alone)

    async def _call(self, step: Step, alone: bool) -> None:
        began = monotonic()
        try:
            outcome = await invoke(step.activity(self._context(step)), step.timeout_s)
            checked = _checked(step, outcome)
        except Exception as error:
            if is_transient(error):
                raise StoreUnavailable(f"in {step.name}: {described(error)}") from error
            await self._commit_error(step, error, _ms_since(began), alone)
        else:
            await self._commit(step, checked, _ms_since(began), alone)

    async def _commit(self, step: Step, outcome: Outcome, elapsed_ms: int, alone: bool) -> None:
        claim, name = self.claim, step.name
        if isinstance(outcome, Sleep | WaitForSignal | Yield):
            await self._store.suspend_step(claim, name, outcome, elapsed_ms, ends=alone)
            if step.hold == "task" and isinstance(outcome, Sleep):
                await self._holds.keep(step, outcome.delay_s)
            return self.observer.suspended(claim.instance, name, elapsed_ms)
        following, last = self._following(step), self._nothing_follows(step)
        output = checked_output(name, outcome)
        await self._store.complete_step(claim, name, output, elapsed_ms, starts=following, last=last)
        self.observer.completed(claim.instance, name, elapsed_ms)
        if following is not None:
            self._started_ahead = following
            self.observer.started(claim.instance, following, None)
        await self._notify_reader()
        return None

    def _following(self, step: Step) -> str | None:
        """The one step that may begin in the same update: nothing else is open, no permit, no shutdown."""
        instance, definition = self.claim.instance, self._definition
        if self._stopping or definition.tenant_resource or len(open_steps(instance, definition.plan)) != 1:
            return None
        after = [s for s in definition.steps if step.name in definition.plan.dependencies_of(s.name)]
        if len(after) != 1 or after[0].resource or len(definition.plan.dependencies_of(after[0].name)) != 1:
            return None
        return after[0].name

    def _nothing_follows(self, step: Step) -> bool:
        """Whether this completion is the end of the workflow: every other step is done, and no finalizer is to run."""
        others = (state for name, state in self.claim.instance.steps.items() if name != step.name)
        return self._definition.success_finalizer is None and all(other.status in DONE for other in others)

    async def _commit_error(self, step: Step, error: Exception, elapsed_ms: int, alone: bool) -> None:
        claim, name, text = self.claim, step.name, described(error)
        log.info("%s %s: %s", claim.instance.biz_key, name, text, exc_info=not text)
        decided = verdict(step, claim.instance.steps[name].failures + 1, error, uniform(-1, 1))
        match decided.act:
            case "cancel":
                await self._store.cancel_workflow(claim, name, text)
            case "retry":
                await self._store.retry_step(claim, name, text, elapsed_ms, decided.delay_s, ends=alone)
            case "skip":
                await self._store.skip_step(claim, name, text, elapsed_ms)
            case "fail":
                await self._store.fail_step(claim, name, text, elapsed_ms)
        self.observer.failed(claim.instance, name, elapsed_ms, text)
        await self._notify_reader()

    # ---- the end ----

    async def _begin_failing(self, error: str) -> None:
        await self._store.begin_failing(self.claim, error)
        self.observer.moved(self.claim.instance)

    async def _succeed(self) -> None:
        finalizer = self._definition.success_finalizer
        if finalizer is None or await self._finalized(finalizer):
            await self._store.complete_workflow(self.claim)
            self.observer.moved(self.claim.instance)

    async def _fail(self) -> None:
        finalizer = self._definition.failure_finalizer
        if finalizer is None or await self._finalized(finalizer):
            await self._store.fail_workflow(self.claim)
            self.observer.moved(self.claim.instance)

    async def _finalized(self, finalizer: Finalizer) -> bool:
        """Whether the finalizer is done. A stale round means: already done when failing, failing when succeeding."""
        claim = self.claim
        try:
            await invoke(finalizer(self._workflow_context()), FINALIZER_TIMEOUT_S)
        except StaleRound as error:
            if claim.instance.status is Status.FAILING:
                return True
            await self._begin_failing(described(error))
            return False
        except Exception as error:
            if is_transient(error):
                raise StoreUnavailable(described(error)) from error
            failures = claim.instance.finalizer_failures + 1
            delay_s = FINALIZER_BACKOFF.delay_s(failures, uniform(-1, 1))
            park = failures >= FINALIZER_TRIES
            log.warning("finalizer of %s: %s", claim.instance.biz_key, described(error))
            await self._store.defer_finalizer(claim, described(error), delay_s, park=park)
            self.observer.moved(claim.instance)
            return False
        return True

    async def _after_claim(self) -> None:
        """After the commit, best effort: tell the lanes, the inbox and the readers."""
        instance = self.claim.instance
        self.observer.moved(instance)
        if instance.ended:
            await self._parts.hints.gone(instance.workflow_id)
            if self._definition.streams:
                await self._parts.streams.end(self._stream_key(), instance.status.encode())
            return
        soon = instance.claimable_time <= self.claim.now()
        await (self._parts.hints.ready(instance) if soon else self._parts.hints.due(instance))
        if any(s.wait and s.wait.kind == "signal" for s in instance.steps.values()):
            await self._parts.publisher.try_to_match([instance.workflow_id])
        await self._notify_reader()

    async def _notify_reader(self) -> None:
        if self._definition.streams:
            await self._parts.streams.notify(self._stream_key())

    # ---- what business code is given ----

    def _stream_key(self) -> StreamKey:
        instance = self.claim.instance
        return StreamKey(instance.biz_key, instance.workflow_id, instance.round)

    def _workflow_context(self) -> WorkflowContext:
        return WorkflowContext(**self._shared())

    def _context(self, step: Step) -> StepContext:
        state = self.claim.instance.steps[step.name]
        return StepContext(
            **self._shared(),
            step=step.name,
            attempt=state.attempt,
            checkpoint=state.checkpoint,
            resume=state.resume,
            open_stream=lambda: self._parts.streams.open(self._stream_key()),
        )

    def _shared(self) -> dict[str, Any]:
        instance, prepare = self.claim.instance, self._definition.prepare_context
        return {
            "workflow_id": instance.workflow_id,
            "biz_key": instance.biz_key,
            "type": instance.type,
            "round": instance.round,
            "run": instance.run,
            "priority": instance.business_priority,
            "input": instance.input,
            "outputs": instance.output,
            "error": instance.error,
            "now": self.claim.now,
            "prepared": prepare(instance.input) if prepare else None,
        }


def _checked(step: Step, outcome: Outcome) -> Outcome:
    """Refuse a result that could not be stored before anything of it is committed."""
    if isinstance(outcome, Sleep | WaitForSignal | Yield):
        checked_checkpoint(step.name, outcome.checkpoint)
    else:
        checked_output(step.name, outcome)
    return outcome


def _ms_since(began: float) -> int:
    return round((monotonic() - began) * 1000)
