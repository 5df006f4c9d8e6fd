"""StartOrResume, DeliverSignal, Supersede: all that a process needs which registers work but runs none.

It knows Plans only and imports no activity. Each call may be repeated by anyone at any time.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
from bson import encode

from kernel.definition import Plan, check
from kernel.errors import IdentityMismatch, StoreUnavailable, TooLarge, UnknownType
from kernel.hints import Hints
from kernel.inbox import Inbox, matching
from kernel.instances import Instances
from kernel.model import Instance, Resume, Signal, Status
from kernel.stream import ClientStreams, StreamKey
from kernel.writes import Document, plain

log = logging.getLogger(__name__)
INPUT_LIMIT_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Started:
    """The instance of a biz_key, and whether this very call set it going."""

    instance: Instance
    activated: bool


class Publisher:
    """Registers workflows and rings their bells."""

    def __init__(
        self, instances: Instances, inbox: Inbox, hints: Hints, streams: ClientStreams, plans: Iterable[Plan]
    ) -> None:
        self._instances = instances
        self._inbox = inbox
        self._hints = hints
        self._streams = streams
        self._plans: dict[str, Plan] = {}
        self.register(*plans)

    def register(self, *plans: Plan) -> None:
        """Make types known. Raises InvalidDefinition."""
        for plan in plans:
            check(plan)
            self._plans[plan.type] = plan

    async def start_or_resume(
        self,
        type: str,
        biz_key: str,
        input: msgspec.Struct,
        *,
        round: int,
        priority: int,
        from_step: str | None = None,
    ) -> Started:
        """Create the instance of `biz_key`, replay a failed one for a newer round, or leave it alone.

        A replay keeps what was done, but for `from_step` and what depends on it.
        Raises UnknownType, UnknownStep, TooLarge, IdentityMismatch or StoreUnavailable.
        """
        plan = self._plan(type)
        again = plan.from_step(from_step) if from_step else frozenset[str]()
        values = _checked_input(type, input)
        found, created = await self._instances.create(plan, biz_key, values, round, priority)
        if (found.biz_key, found.type) != (biz_key, type):
            raise IdentityMismatch(f"{found.workflow_id} is {found.type} {found.biz_key!r}, not {type} {biz_key!r}")
        started = Started(found, True) if created else await self._resume(found, values, round, priority, again)
        if started.activated and started.instance.run > 1:
            await self._streams.reset(StreamKey(biz_key, found.workflow_id, round))
        await self._hints.ready(started.instance)
        return started

    async def _resume(
        self, found: Instance, values: Document, round: int, priority: int, again: frozenset[str]
    ) -> Started:
        if found.status is Status.FAILED and found.round < round:
            replayed = await self._instances.replay(found, values, round, priority, again)
            return Started(replayed or await self._again(found), replayed is not None)
        if not found.ended and found.business_priority > priority:
            await self._instances.raise_priority(found.workflow_id, priority)
            return Started(await self._again(found), False)
        return Started(found, False)

    async def deliver_signal(self, signal: Signal) -> bool:
        """Store the signal, then wake whoever waits for it; False where this id was delivered before.

        Raises StoreUnavailable where it may not be stored: deliver it again. Once stored, waking is left to the scan
        where it cannot be done now.
        """
        [inserted] = await self.deliver_signals([signal])
        return inserted

    async def deliver_signals(self, signals: Sequence[Signal]) -> list[bool]:
        """`deliver_signal` for many, some hundred at most, whose writes share their commands; an answer for each."""
        inserted = await asyncio.gather(*(self._inbox.insert(signal) for signal in signals))
        await self.try_to_match([signal.workflow_id for signal in signals])
        return inserted

    async def try_to_match(self, workflow_ids: Sequence[str]) -> None:
        """`match_signals`, or leave it to the scan where MongoDB does not answer."""
        try:
            await self.match_signals(workflow_ids)
        except StoreUnavailable as error:
            log.info("signals of %s are matched by the next scan: %s", ", ".join(workflow_ids[:3]), error)

    async def match_signals(self, workflow_ids: Iterable[str]) -> None:
        """Join what instances wait for with what lies in their inboxes. Either side may have come first."""
        found = await self._instances.several([*set(workflow_ids)])
        free = {one.workflow_id: one for one in found if not (one.ended or one.claim_token)}
        inboxes: dict[str, list[Signal]] = {workflow_id: [] for workflow_id in free}
        for signal in await self._inbox.unmatched([*free]):
            inboxes[signal.workflow_id].append(signal)
        await asyncio.gather(
            *(self._match(free[workflow_id], inbox) for workflow_id, inbox in inboxes.items() if inbox)
        )

    async def _match(self, found: Instance, inbox: list[Signal]) -> None:
        for step, wait, signal in matching(found, inbox):
            resume = Resume("signal", signal.signal_id)
            woken = await self._instances.activate(found.workflow_id, step, wait, resume, due=False)
            if woken is not None:
                await self._inbox.mark_matched(signal.signal_id)
                await self._hints.ready(woken)

    async def supersede(self, workflow_id: str) -> bool:
        """Cancel an unfinished instance from outside; False where it has ended or is not there."""
        found = await self._instances.get(workflow_id)
        if found is None or await self._instances.supersede(found) is None:
            return False
        await self._hints.gone(workflow_id)
        return True

    def _plan(self, type: str) -> Plan:
        try:
            return self._plans[type]
        except KeyError:
            known = ", ".join(sorted(self._plans))
            raise UnknownType(f"no plan is registered for {type!r}; known are {known}") from None

    async def _again(self, found: Instance) -> Instance:
        return await self._instances.get(found.workflow_id) or found


def _checked_input(type: str, input: msgspec.Struct) -> Document:
    values = plain(input) or {}
    if (size := len(encode(values))) > INPUT_LIMIT_BYTES:
        raise TooLarge(f"the input of {type} has {size} bytes; at most {INPUT_LIMIT_BYTES} are allowed")
    return values
