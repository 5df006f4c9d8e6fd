"""The one place that opens MongoDB: Motor, or PyMongo Async with `driver="pymongo"`.

Only the subset that both share is used above this line. Every write waits for the majority's journal, every read is a
majority read, and times come back timezone-aware.
"""

import asyncio
import sys
from collections.abc import Awaitable
from importlib import import_module
from typing import Any, cast

from bson.codec_options import CodecOptions
from pymongo import WriteConcern
from pymongo.read_concern import ReadConcern

Database = Any
Collection = Any
Bucket = Any


def open_mongo(url: str, *, driver: str = "motor", timeout_s: float = 4.0) -> Any:
    """A client for `url`. It connects at first use."""
    options: dict[str, Any] = {
        "tz_aware": True,
        "timeoutMS": round(timeout_s * 1000),
        "serverSelectionTimeoutMS": round(timeout_s * 1000),
        "connectTimeoutMS": round(timeout_s * 1000),
        "appname": "baton",
    }
    if driver == "pymongo":
        from pymongo import AsyncMongoClient

        _mend_waits()
        return cast(Any, AsyncMongoClient(url, **options))
    from motor.motor_asyncio import AsyncIOMotorClient

    return cast(Any, AsyncIOMotorClient(url, **options))


def _mend_waits() -> None:
    """Let PyMongo Async wait for its conditions as it does from Python 3.12 on.

    Before, `asyncio.wait_for` waits in a task of its own. Cancelled a second time, or during its time-out, it leaves
    that task behind, which then takes the pool's or the topology's lock for ever: no call of this client ends any more.
    """
    if sys.version_info < (3, 12):
        lock: Any = import_module("pymongo.lock")
        lock.wait_for = _wait_for


async def _wait_for(awaitable: Awaitable[Any], timeout: float | None) -> Any:
    async with asyncio.timeout(timeout):
        return await awaitable


def open_database(client: Any, name: str) -> Database:
    """The database, with majority writes (journaled) and majority reads."""
    return client.get_database(
        name,
        codec_options=CodecOptions(tz_aware=True),
        write_concern=WriteConcern(w="majority", j=True),
        read_concern=ReadConcern("majority"),
    )


def open_bucket(database: Database, name: str) -> Bucket:
    """A GridFS bucket of that name."""
    if type(database).__module__.startswith("motor"):
        from motor.motor_asyncio import AsyncIOMotorGridFSBucket

        return AsyncIOMotorGridFSBucket(database, bucket_name=name)
    from gridfs.asynchronous import AsyncGridFSBucket

    return AsyncGridFSBucket(database, bucket_name=name)
