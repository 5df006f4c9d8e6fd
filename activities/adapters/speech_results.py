"""What was heard by providers that keep no tasks of their own, in MongoDB: a week, under the key it was asked with."""

from datetime import timedelta

from msgspec.structs import asdict

from activities.adapters.objects import Objects, literals, loaded
from activities.payloads import SpeechStatus
from kernel import Clock, boundary
from kernel.driver import Database

KEPT = timedelta(days=7)


class SpeechResults:
    """`speech_results`. The first result of a key stands."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._collection = database["speech_results"]
        self._objects = Objects(self._collection, clock)

    async def ensure_indexes(self) -> None:
        """The index by which MongoDB removes results that are a week old."""
        await self._collection.create_index([("created_at", 1)], expireAfterSeconds=round(KEPT.total_seconds()))

    async def get(self, key: str) -> SpeechStatus | None:
        """The result, or None."""
        found = await self._objects.get(key)
        return loaded(found, "task_id", SpeechStatus) if found else None

    @boundary
    async def store(self, key: str, status: SpeechStatus) -> None:
        """Keep what was heard, so that no later try asks for it again."""
        fields = asdict(status)
        del fields["task_id"]
        await self._objects.create(key, literals(fields))
