"""What the holder of a claim writes: one method, one atomic update, each conditional on the claim token.

A write whose condition misses raises ClaimLost, and nobody repeats it without the condition. After a network fault
the outcome is read back: our commit id there means applied, our token there without it means repeat, anything else
means lost.
"""

import asyncio
from time import monotonic

import msgspec

from kernel.claims import Claim
from kernel.clock import Clock
from kernel.commits import Commits
from kernel.directives import Checkpoint, Directive, Sleep, WaitForSignal, Yield
from kernel.driver import Database
from kernel.errors import ClaimLost, StoreUnavailable
from kernel.faults import boundary
from kernel.instances import woken
from kernel.model import CLAIMABLE, FAR_FUTURE, SETTLED, Instance, Resume, Status, StepStatus, Wait
from kernel.ready import open_steps
from kernel.writes import Document, changed, literal, new_token, plain, wrapped

RUNNING = (Status.RUNNING,)
FAILING = (Status.FAILING,)


class Store:
    """`workflow_instances`, written by the holder of the claim."""

    def __init__(self, database: Database, commits: Commits, clock: Clock) -> None:
        self._collection = database["workflow_instances"]
        self._commits = commits
        self._clock = clock

    # ---- the claim itself ----

    @boundary
    async def renew(self, claim: Claim) -> None:
        """Extend the lease. Not a state change: the revision stays."""
        sent_at = monotonic()
        later = {"$max": ["$claimable_time", self._clock.after(claim.lease_s)]}
        condition = {"_id": claim.instance.workflow_id, "status": {"$in": [*CLAIMABLE]}, "claim_token": claim.token}
        async with wrapped():
            result = await self._collection.update_one(condition, [{"$set": {"claimable_time": later}}])
        if result.matched_count == 0:
            raise ClaimLost
        claim.extend(sent_at)

    @boundary
    async def end_claim(self, claim: Claim) -> None:
        """Give the claim back when all steps of the wave have settled: due at the earliest `due`."""
        await self._advance(claim, RUNNING, {}, ends=True)

    @boundary
    async def wake_step(self, claim: Claim, step: str, resume: Resume) -> None:
        """Activate a waiting step inside the claim, whose lease stays as it is."""
        await self._advance(claim, RUNNING, woken(step, resume))

    # ---- steps ----

    @boundary
    async def start_step(self, claim: Claim, step: str) -> None:
        """Commit the entry into business code before it happens."""
        await self._advance(claim, RUNNING, self._started(step))

    @boundary
    async def complete_step(
        self,
        claim: Claim,
        step: str,
        output: Document | None,
        elapsed_ms: int,
        *,
        starts: str | None = None,
        last: bool = False,
    ) -> None:
        """Commit status and output together; `starts` begins the next step in the same update.

        `last` says that nothing else is to be done, not even a finalizer: the same update is the terminal one.
        """
        changes = self._settled(step, StepStatus.COMPLETED, elapsed_ms)
        changes[f"output.{step}"] = literal(output)
        if starts is not None:
            changes |= self._started(starts)
        if last:
            changes |= self._completed()
        await self._advance(claim, RUNNING, changes, closes=last)

    @boundary
    async def skip_step(self, claim: Claim, step: str, error: str, elapsed_ms: int) -> None:
        """Go on without a step whose retries are exhausted."""
        changes = self._settled(step, StepStatus.SKIPPED, elapsed_ms) | _failure(step, error)
        await self._advance(claim, RUNNING, changes)

    @boundary
    async def fail_step(self, claim: Claim, step: str, error: str, elapsed_ms: int) -> None:
        """Record a step's final error."""
        changes = self._settled(step, StepStatus.FAILED, elapsed_ms) | _failure(step, error)
        await self._advance(claim, RUNNING, changes)

    @boundary
    async def retry_step(
        self, claim: Claim, step: str, error: str, elapsed_ms: int, delay_s: float, *, ends: bool
    ) -> None:
        """Record an error and when the step may be tried again; `ends` gives the claim back in the same update."""
        changes = {
            f"steps.{step}.status": literal(StepStatus.PENDING),
            f"steps.{step}.due": self._clock.after(delay_s),
            f"steps.{step}.resume": literal(None),
            **_add(f"steps.{step}.elapsed_ms", elapsed_ms),
            **_failure(step, error),
            "opening": literal(step),
        }
        await self._advance(claim, RUNNING, changes, ends=ends)

    @boundary
    async def suspend_step(self, claim: Claim, step: str, directive: Directive, elapsed_ms: int, *, ends: bool) -> None:
        """Commit a directive: checkpoint and wait together, the attempt rolled back."""
        changes = {
            **self._suspension(step, directive),
            f"steps.{step}.checkpoint": literal(_checkpoint(directive.checkpoint)),
            f"steps.{step}.resume": literal(None),
            f"steps.{step}.suspended_at": self._clock.now,
            **_add(f"steps.{step}.attempt", -1),
            **_add(f"steps.{step}.waits", 1),
            **_add(f"steps.{step}.elapsed_ms", elapsed_ms),
            "opening": literal(step),
            "strikes": literal(0),
        }
        await self._advance(claim, RUNNING, changes, ends=ends)

    @boundary
    async def defer_step(self, claim: Claim, step: str, delay_s: float, reason: str, *, ends: bool) -> None:
        """Record that no permit was to be had: not a failure, not an attempt."""
        since = {"$ifNull": [f"$steps.{step}.traffic_since", self._clock.now]}
        changes = {
            f"steps.{step}.status": literal(StepStatus.PENDING),
            f"steps.{step}.due": self._clock.after(delay_s),
            f"steps.{step}.traffic_reason": literal(reason),
            f"steps.{step}.traffic_since": since,
            **_add(f"steps.{step}.traffic_waits", 1),
            **_add(f"steps.{step}.traffic_wait_ms", round(delay_s * 1000)),
            "strikes": literal(0),
        }
        await self._advance(claim, RUNNING, changes, ends=ends)

    # ---- the end ----

    @boundary
    async def begin_failing(self, claim: Claim, error: str) -> None:
        """From here on no step runs; the failure finalizer must."""
        await self._advance(claim, RUNNING, {"status": literal(Status.FAILING), "error": literal(error)})

    @boundary
    async def defer_finalizer(self, claim: Claim, error: str, delay_s: float, *, park: bool) -> None:
        """Record a finalizer's error and give the claim back until later, or until an operator releases it."""
        changes = {
            "error": literal(error),
            "finalizer_failures": {"$add": ["$finalizer_failures", 1]},
            "claimable_time": literal(FAR_FUTURE) if park else self._clock.after(delay_s),
            "claim_token": literal(""),
        }
        if park:
            changes["parked_at"] = self._clock.now
        await self._advance(claim, tuple(CLAIMABLE), changes, closes=True)

    @boundary
    async def complete_workflow(self, claim: Claim) -> None:
        """The terminal write of a success."""
        await self._advance(claim, RUNNING, self._completed(), closes=True)

    @boundary
    async def fail_workflow(self, claim: Claim) -> None:
        """The terminal write of a failure."""
        await self._advance(claim, FAILING, self._terminal(Status.FAILED), closes=True)

    @boundary
    async def cancel_workflow(self, claim: Claim, step: str, error: str) -> None:
        """One update: this step and waiting siblings skipped, the workflow canceled. No finalizer."""
        names = [n for n in claim.instance.step_order if claim.instance.steps[n].status not in SETTLED]
        skipped = {f"steps.{name}.status": literal(StepStatus.SKIPPED) for name in names}
        waits = {f"steps.{name}.wait": literal(None) for name in names}
        changes = skipped | waits | self._terminal(Status.CANCELED) | {f"steps.{step}.error": literal(error)}
        await self._advance(claim, RUNNING, changes, closes=True)

    # ---- changes ----

    def _started(self, step: str) -> Document:
        return {
            f"steps.{step}.status": literal(StepStatus.RUNNING),
            **_add(f"steps.{step}.attempt", 1),
            f"steps.{step}.started_at": self._clock.now,
            f"steps.{step}.due": literal(None),
            f"steps.{step}.suspended_at": literal(None),
            f"steps.{step}.traffic_reason": literal(None),
            f"steps.{step}.traffic_since": literal(None),
        }

    def _settled(self, step: str, status: StepStatus, elapsed_ms: int) -> Document:
        return {
            f"steps.{step}.status": literal(status),
            f"steps.{step}.finished_at": self._clock.now,
            f"steps.{step}.resume": literal(None),
            **_add(f"steps.{step}.elapsed_ms", elapsed_ms),
            "strikes": literal(0),
        }

    def _suspension(self, step: str, directive: Directive) -> Document:
        match directive:
            case Sleep(delay_s=delay_s):
                return _waiting(step, Wait("timer"), self._clock.after(delay_s))
            case WaitForSignal(signal_type=signal_type, key=key, generation=generation, poll_fallback_s=poll_s):
                due = literal(FAR_FUTURE) if poll_s is None else self._clock.after(poll_s)
                return _waiting(step, Wait("signal", signal_type, key, generation), due)
            case Yield():
                return {f"steps.{step}.status": literal(StepStatus.PENDING), f"steps.{step}.due": literal(None)}

    def _completed(self) -> Document:
        return self._terminal(Status.COMPLETED) | {"error": literal(None)}

    def _terminal(self, status: Status) -> Document:
        return {
            "status": literal(status),
            "finished_at": self._clock.now,
            "claimable_time": literal(FAR_FUTURE),
            "claim_token": literal(""),
        }

    def _claim_end(self, claim: Claim) -> Document:
        """Status and due time from what the open steps say after the update; the token is cleared."""
        names = open_steps(claim.instance, claim.plan)
        waiting = [{"$in": [f"$steps.{n}.status", [*SETTLED, StepStatus.WAITING]]} for n in names]
        dues = [{"$ifNull": [f"$steps.{name}.due", self._clock.now]} for name in names]
        return {
            "status": {"$cond": [{"$and": waiting}, Status.WAITING, Status.RUNNING]} if names else Status.RUNNING,
            "claimable_time": {"$min": dues} if names else self._clock.now,
            "claim_token": literal(""),
        }

    # ---- the one way to write ----

    async def _advance(
        self,
        claim: Claim,
        statuses: tuple[Status, ...],
        changes: Document,
        *,
        ends: bool = False,
        closes: bool = False,
    ) -> None:
        """Apply `changes` if the claim still holds, and keep the committed instance.

        `ends` adds the claim end computed from the steps, `closes` says that the changes themselves end the claim.
        """
        async with claim.writing:
            claim.check()
            commit = new_token()
            pipeline = [{"$set": {**changes, **changed(self._clock, commit)}}]
            if ends:
                pipeline.append({"$set": self._claim_end(claim)})
            found = await self._settle(claim, statuses, pipeline, commit)
            claim.instance = msgspec.convert(found, Instance)
            claim.open = claim.open and not (ends or closes)

    async def _settle(
        self, claim: Claim, statuses: tuple[Status, ...], pipeline: list[Document], commit: str
    ) -> Document:
        """The last commit is a condition too: a write that the network delivers late must miss after its repetition."""
        key = {"_id": claim.instance.workflow_id}
        held = {"claim_token": claim.token, "commit": claim.instance.commit}
        condition = {**key, "status": {"$in": [*statuses]}, **held}
        uncertain = False
        while True:
            try:
                async with wrapped():
                    found = await self._commits.apply(condition, pipeline, commit=commit)
                    if found is None and uncertain:
                        found = await self._collection.find_one({**key, "commit": commit})
            except StoreUnavailable:
                uncertain = True
                await asyncio.sleep(min(0.2, max(claim.seconds_left, 0)))
                claim.check()
                continue
            if found is None:
                raise ClaimLost
            return found


def _waiting(step: str, wait: Wait, due: object) -> Document:
    return {
        f"steps.{step}.status": literal(StepStatus.WAITING),
        f"steps.{step}.wait": literal(plain(wait)),
        f"steps.{step}.due": due,
    }


def _failure(step: str, error: str) -> Document:
    """Any error clears the checkpoint: it described a position that has failed."""
    return {
        **_add(f"steps.{step}.failures", 1),
        f"steps.{step}.error": literal(error),
        f"steps.{step}.checkpoint": literal(None),
        "strikes": literal(0),
    }


def _add(path: str, amount: int) -> Document:
    return {path: {"$add": [f"${path}", amount]}}


def _checkpoint(value: Checkpoint | None) -> Document | None:
    return plain(value)
