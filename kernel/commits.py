"""Conditional updates of instances, sent one by one while it is quiet and many in one command while it is not.

Whatever asks while an update is in flight waits for it and then goes out with all others that waited: no timer, so an
update that is alone waits for nothing, and the journal is synced once for many.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, ExecutionTimeout, OperationFailure

from kernel.driver import Collection
from kernel.errors import StoreUnavailable
from kernel.writes import Document, is_transient

Answer = Document | Exception | None
MOST_AT_ONCE = 128
EXCEEDED_TIME = 50


@dataclass(slots=True)
class _Asked:
    condition: Document
    pipeline: list[Document]
    upsert: bool
    marks: Document
    answer: "asyncio.Future[Document | None]"


class Commits:
    """The updates of one collection by one process."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._waiting: list[_Asked] = []
        self._sending: asyncio.Task[None] | None = None

    async def apply(
        self, condition: Document, pipeline: list[Document], *, upsert: bool = False, **marks: str
    ) -> Document | None:
        """Update the document of `condition["_id"]` if it fits; the document as it is then, or None where it does not.

        `marks` are fields with a value that only this update writes: the document is ours while it bears them. One that
        fitted and that somebody else has changed again before it could be read is None, too: whoever asked has lost it.
        Raises the driver's errors; after a passing one the update may have been made or not.
        """
        asked = _Asked(condition, pipeline, upsert, marks, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
        return await asked.answer

    async def _send(self) -> None:
        try:
            while self._waiting:
                await self._settle(self._next())
        finally:
            self._sending = None

    def _next(self) -> list[_Asked]:
        """Those that go together: each document once, as the second change of one would hide the marks of the first."""
        together: dict[Any, _Asked] = {}
        later: list[_Asked] = []
        for asked in self._waiting:
            key = asked.condition["_id"]
            if key in together or len(together) == MOST_AT_ONCE:
                later.append(asked)
            else:
                together[key] = asked
        self._waiting = later
        return list(together.values())

    async def _settle(self, together: list[_Asked]) -> None:
        try:
            answers = await (self._many(together) if len(together) > 1 else self._alone(together[0]))
        except BaseException:
            for asked in together:
                asked.answer.cancel()
            raise
        for asked, answer in zip(together, answers, strict=True):
            if asked.answer.done():  # whoever asked has been cancelled
                continue
            if isinstance(answer, Exception):
                asked.answer.set_exception(answer)
            else:
                asked.answer.set_result(answer)

    async def _alone(self, asked: _Asked) -> list[Answer]:
        try:
            found = await self._collection.find_one_and_update(
                asked.condition, asked.pipeline, upsert=asked.upsert, return_document=ReturnDocument.AFTER
            )
        except Exception as error:
            return [error]
        return [_ours(found, asked.marks)]

    async def _many(self, together: list[_Asked]) -> list[Answer]:
        try:
            return await self._in_one_command(together)
        except Exception as error:
            if is_transient(error):
                return [error] * len(together)
        # what the driver cannot send is the fault of one: the others do not suffer for it
        return [answer for asked in together for answer in await self._alone(asked)]

    async def _in_one_command(self, together: list[_Asked]) -> list[Answer]:
        refused = await self._update([UpdateOne(one.condition, one.pipeline, upsert=one.upsert) for one in together])
        ids = [asked.condition["_id"] for asked in together]
        found = {one["_id"]: one for one in await self._collection.find({"_id": {"$in": ids}}).to_list(len(ids))}
        return [
            refused.get(place) or _ours(found.get(asked.condition["_id"]), asked.marks)
            for place, asked in enumerate(together)
        ]

    async def _update(self, updates: list[UpdateOne]) -> dict[int, OperationFailure]:
        """One command for all; which of them the server refused, by their places."""
        try:
            await self._collection.bulk_write(updates, ordered=False)
        except BulkWriteError as error:
            if unsure := error.details.get("writeConcernErrors"):
                raise StoreUnavailable(f"whether the majority has it is unknown: {unsure[-1]['errmsg']}") from error
            return {one["index"]: _refusal(one) for one in error.details["writeErrors"]}
        return {}


def _refusal(one: Document) -> OperationFailure:
    kind = ExecutionTimeout if one["code"] == EXCEEDED_TIME else OperationFailure
    return kind(one["errmsg"], one["code"], one)


def _ours(found: Document | None, marks: Document) -> Document | None:
    return found if found and all(found.get(name) == value for name, value in marks.items()) else None
