"""Business objects in MongoDB: documents with a round and a state, created once and changed only under their round.

A change whose condition misses (another round, an ended state) raises StaleRound; it is never repeated without it.
"""

from base64 import b32encode
from collections.abc import Collection as Some
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from secrets import token_hex
from typing import Any, TypeVar

import msgspec
from pymongo import ReturnDocument

from kernel import Clock, StaleRound
from kernel.driver import Collection
from kernel.writes import Document, literal, wrapped

T = TypeVar("T")


def derived_id(prefix: str, *parts: str | int) -> str:
    """An id that follows from `parts`: whoever makes the same thing at the same time makes one."""
    digest = sha256()
    for part in parts:
        raw = str(part).encode()
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return f"{prefix}_{b32encode(digest.digest()[:15]).decode().lower()}"


def literals(values: Mapping[str, Any]) -> Document:
    """Each value as a constant of an aggregation expression, Structs as documents."""
    return {
        name: literal(msgspec.to_builtins(value, builtin_types=(bytes, datetime))) for name, value in values.items()
    }


def loaded(document: Document, id_field: str, kind: type[T]) -> T:
    """A document as a Struct whose field `id_field` is the document's `_id`."""
    return msgspec.convert({**document, id_field: document["_id"]}, kind)


class Objects:
    """The business objects of one collection."""

    def __init__(self, collection: Collection, clock: Clock) -> None:
        self._collection = collection
        self._clock = clock

    async def create(self, object_id: str, fields: Document) -> tuple[Document, bool]:
        """The object, and whether this call made it. An existing one is kept; `fields` are expressions."""
        token = token_hex(8)
        times = {"created_at": self._clock.now, "updated_at": self._clock.now}
        new = {"_id": "$_id", **fields, **times, "created_by": literal(token)}
        missing = {"$eq": [{"$type": "$created_at"}, "missing"]}
        found = await self.update(
            {"_id": object_id}, [{"$replaceWith": {"$cond": [missing, new, "$$ROOT"]}}], upsert=True
        )
        if found is None:
            raise AssertionError("an upsert returns its document")
        return found, found["created_by"] == token

    async def get(self, object_id: str, projection: Document | None = None) -> Document | None:
        """The object as it is stored, by a majority read."""
        async with wrapped():
            return await self._collection.find_one({"_id": object_id}, projection)

    async def change(self, object_id: str, round: int, states: Some[str], fields: Document) -> Document:
        """Set `fields` (expressions) while the object serves `round` in one of `states`. Raises StaleRound."""
        condition = {"_id": object_id, "round": round, "state": {"$in": [*states]}}
        found = await self.update(condition, [{"$set": {**fields, "updated_at": self._clock.now}}])
        if found is None:
            raise StaleRound(f"{object_id} does not serve round {round} any more, or has ended.")
        return found

    async def update(self, condition: Document, pipeline: list[Document], *, upsert: bool = False) -> Document | None:
        """One atomic update; the document after it, or None where the condition missed."""
        async with wrapped():
            return await self._collection.find_one_and_update(
                condition, pipeline, upsert=upsert, return_document=ReturnDocument.AFTER
            )


def forward(order: list[str], target: str) -> Document:
    """Expression: the state `target`, unless the object is beyond it already."""
    earlier = order[: order.index(target)]
    return {"$cond": [{"$in": ["$state", literal(earlier)]}, literal(target), "$state"]}


def first_time(field: str, clock: Clock) -> Document:
    """Expression: the field's time, or now where it has none."""
    return {"$ifNull": [f"${field}", clock.now]}
