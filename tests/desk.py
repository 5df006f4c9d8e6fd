"""Business objects with an embedded dispatch intent, and their dispatcher."""

from datetime import timedelta
from typing import Any

from kernel import Parts
from kernel.candidates import Candidates
from kernel.dispatch import Dispatcher
from kernel.intents import Intents, intent
from kernel.mutex import Mutex
from tests.shapes import Business, ObjectInput

SHAPE = "replay"


class Desk:
    """Accepts requests for objects of the shape `replay`."""

    def __init__(self, parts: Parts, business: Business, candidates: Candidates, mutex: Mutex) -> None:
        self.candidates, self.mutex = candidates, mutex
        self.objects = business.objects
        self.intents = Intents(self.objects, parts.clock)
        self.rejected: list[tuple[str, int, str]] = []
        self._business, self._clock = business, parts.clock
        self.dispatcher = Dispatcher(
            self.intents,
            parts.publisher,
            candidates,
            mutex,
            biz_key=lambda object_id: f"{SHAPE}:{object_id}",
            input_type=ObjectInput,
            rebuild=self._rebuild,
            rejected=self._reject,
        )

    async def _rebuild(self, object_id: str, round: int) -> ObjectInput:
        return ObjectInput(object_id, round)

    async def _reject(self, object_id: str, round: int, reason: str) -> None:
        self.rejected.append((object_id, round, reason))

    async def accept(self, object_id: str, round: int = 1) -> None:
        """The request's one write: object and pending intent together; a round that was accepted is left alone."""
        await self._business.open(object_id, round)
        embedded = intent(SHAPE, round, ObjectInput(object_id, round), self._clock)
        older: dict[str, Any] = {"workflow_dispatch.fencing_token": {"$not": {"$gte": round}}}
        await self.objects.update_one({"_id": object_id, **older}, [{"$set": {"workflow_dispatch": embedded}}])

    async def status(self, object_id: str) -> str:
        found = await self.intents.get(object_id)
        assert found is not None
        return found.status

    async def scan(self) -> int:
        """One recovery that looks into MongoDB too, as one of them does every half minute."""
        await self.mutex.forget("dispatch")
        return await self.dispatcher.recover()

    def later(self, seconds: float) -> None:
        self._clock.advance(timedelta(seconds=seconds))
