"""Idempotency keys of requests, in MongoDB: which summary a person's key led to, kept for a day.

The key is written before the summary is made and completed after it. A request that died in between is simply carried
out again: making the summary is itself idempotent.
"""

from hashlib import sha256

import msgspec
from pymongo import ReturnDocument

from activities.adapters.objects import derived_id, literals
from activities.records import KeyReused
from kernel import Clock, boundary
from kernel.driver import Database
from kernel.writes import Document, literal, wrapped

KEPT_S = 24 * 3600


class RequestKeys:
    """`request_keys`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._collection = database["request_keys"]
        self._clock = clock

    async def ensure_indexes(self) -> None:
        """The index that forgets keys after a day."""
        await self._collection.create_index("created_at", expireAfterSeconds=KEPT_S)

    @boundary
    async def reserve(self, user_id: str, key: str, *body: str) -> str | None:
        """The id of the summary that this key led to, or None. Raises KeyReused where it came with another body."""
        digest = sha256(msgspec.json.encode(body)).hexdigest()
        new = {"_id": "$_id", **literals({"body": digest, "summary_id": None}), "created_at": self._clock.now}
        stale = {"$lt": [{"$ifNull": ["$created_at", literal(None)]}, self._clock.after(-KEPT_S)]}
        found = await self._update(_id(user_id, key), [{"$replaceWith": {"$cond": [stale, new, "$$ROOT"]}}])
        if found["body"] != digest:
            raise KeyReused("This Idempotency-Key came with another request in the last 24 hours; send a new key.")
        return found["summary_id"]

    @boundary
    async def complete(self, user_id: str, key: str, summary_id: str) -> None:
        """Remember which summary the key led to."""
        await self._update(_id(user_id, key), [{"$set": {"summary_id": literal(summary_id)}}])

    async def _update(self, key_id: str, pipeline: list[Document]) -> Document:
        async with wrapped():
            return await self._collection.find_one_and_update(
                {"_id": key_id}, pipeline, upsert=True, return_document=ReturnDocument.AFTER
            )


def _id(user_id: str, key: str) -> str:
    return derived_id("key", user_id, key)
