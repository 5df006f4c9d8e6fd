"""The one place that opens MongoDB: Motor, or PyMongo Async with `driver="pymongo"`.

Only the subset that both share is used above this line. Every write waits for the majority's journal, every read is a
majority read, and times come back timezone-aware.
"""

from typing import Any, cast

from bson.codec_options import CodecOptions
from pymongo import WriteConcern
from pymongo.read_concern import ReadConcern

NO_QUEUE: dict[str, Any] = {"maxPoolSize": 500, "maxConnecting": 500}
"""PyMongo Async queues for a connection with `asyncio.wait_for`, which before Python 3.12 can lose the pool's lock for
ever when the caller is cancelled. With so many places nobody queues."""

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

        return cast(Any, AsyncMongoClient(url, **options, **NO_QUEUE))
    from motor.motor_asyncio import AsyncIOMotorClient

    return cast(Any, AsyncIOMotorClient(url, **options))


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
