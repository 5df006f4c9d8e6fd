"""Packaged audio, and files as they were uploaded, in GridFS: written once under an id of its own and never changed.

Packaging again writes another file; the session's reference, written last, decides which one counts, and files that
no session refers to can be swept.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from inspect import isawaitable
from typing import Any

from bson import ObjectId
from gridfs.errors import NoFile
from pymongo.errors import PyMongoError

from activities.ports import RecordingMissing
from kernel import boundary
from kernel.driver import Database, open_bucket
from kernel.writes import wrapped

BUCKET = "recordings"
UPLOADS = "uploads"
CHUNK_BYTES = 255 * 1024


def new_media_id(session_id: str, round: int) -> str:
    """An id for one packaging of a session; each try has its own."""
    return f"{session_id}-{round}-{secrets.token_hex(6)}"


def session_of(media_id: str) -> str:
    """The session that a recording was made for."""
    return media_id.rpartition("-")[0].rpartition("-")[0]


class GridRecordings:
    """Recordings by media id; in the bucket `UPLOADS`, files by their address."""

    def __init__(self, database: Database, bucket: str = BUCKET) -> None:
        self._bucket = open_bucket(database, bucket)
        self._files = database[f"{bucket}.files"]
        self._chunks = database[f"{bucket}.chunks"]

    @boundary
    async def store(self, media_id: str, pieces: AsyncIterator[bytes]) -> int:
        """Write a recording; it can be read once all of it is there. Returns its size in bytes."""
        async with wrapped():
            upload = self._bucket.open_upload_stream_with_id(media_id, media_id, chunk_size_bytes=CHUNK_BYTES)
            try:
                size = await _copy(pieces, upload)
                await upload.close()
            except BaseException:
                with suppress(PyMongoError):  # what stays behind has no file entry, and is never read
                    await upload.abort()
                raise
        return size

    async def read(self, media_id: str) -> bytes:
        """The whole recording (Ogg Opus). Raises RecordingMissing."""
        return b"".join([piece async for piece in self.open_range(media_id, 0, await self.size(media_id))])

    async def size(self, media_id: str) -> int:
        """Size in bytes. Raises RecordingMissing."""
        async with wrapped():
            found = await self._files.find_one({"_id": media_id}, {"length": 1})
        if found is None:
            raise RecordingMissing(f"No recording {media_id} is stored.")
        return int(found["length"])

    async def holds(self, media_id: str) -> bool:
        """Whether all of it is stored."""
        async with wrapped():
            return await self._files.find_one({"_id": media_id}, {"_id": 1}) is not None

    async def open_range(self, media_id: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not including, `end`, in pieces. Raises RecordingMissing."""
        async with wrapped():
            download = await self._open(media_id)
            moved = download.seek(start)  # Motor moves at once, PyMongo Async when awaited
            if isawaitable(moved):
                await moved
            left = end - start
            while left > 0 and (piece := await download.read(min(left, CHUNK_BYTES))):
                left -= len(piece)
                yield piece

    async def _open(self, media_id: str) -> Any:
        try:
            return await self._bucket.open_download_stream(media_id)
        except NoFile as error:
            raise RecordingMissing(f"No recording {media_id} is stored.") from error

    async def stored_before(self, instant: datetime) -> list[str]:
        """Ids of all that began to be stored before an instant, half uploads included."""
        oldest = ObjectId.from_datetime(instant)
        async with wrapped():
            found = await self._chunks.distinct("files_id", {"n": 0, "_id": {"$lt": oldest}})
        return [str(media_id) for media_id in found]

    @boundary
    async def delete(self, media_id: str) -> None:
        """Remove a recording, or what there is of it."""
        async with wrapped():
            with suppress(NoFile):
                await self._bucket.delete(media_id)


async def _copy(pieces: AsyncIterator[bytes], upload: Any) -> int:
    size = 0
    async for piece in pieces:
        await upload.write(piece)
        size += len(piece)
    return size
