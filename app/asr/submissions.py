"""The bytes submitted with tasks (GridFS bucket `asr_audio`), kept until their task has ended.

A file is written under an id of its own before its task refers to it; what no open task refers to is swept.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from bson import ObjectId
from bson.errors import InvalidId
from gridfs.errors import NoFile

from kernel.driver import Database, open_bucket
from kernel.faults import boundary
from kernel.writes import wrapped

BUCKET = "asr_audio"
GRACE = timedelta(hours=1)
"""An upload may take this long before it counts as abandoned."""
READ_BYTES = 1 << 20


class Submissions:
    """Submitted audio by id."""

    def __init__(self, database: Database) -> None:
        self._bucket = open_bucket(database, BUCKET)
        self._chunks = database[f"{BUCKET}.chunks"]
        self._files = database[f"{BUCKET}.files"]

    @boundary
    async def store(self, pieces: AsyncIterator[bytes]) -> tuple[str, int]:
        """Write the pieces; returns the id and the size in bytes. Nothing can be read until all are there."""
        file_id, size = ObjectId(), 0
        async with wrapped():
            upload = self._bucket.open_upload_stream_with_id(file_id, str(file_id))
            try:
                async for piece in pieces:
                    await upload.write(piece)
                    size += len(piece)
                await upload.close()
            except BaseException:
                await upload.abort()
                raise
        return str(file_id), size

    async def read(self, audio_id: str) -> bytes | None:
        """The whole file; None if there is none."""
        content = bytearray()
        try:
            async with wrapped():
                download = await self._bucket.open_download_stream(ObjectId(audio_id))
                while piece := await download.read(READ_BYTES):
                    content += piece
        except (NoFile, InvalidId):
            return None
        return bytes(content)

    @boundary
    async def remove(self, audio_id: str) -> None:
        """Remove the file; one that is not there is fine."""
        async with wrapped():
            try:
                await self._bucket.delete(ObjectId(audio_id))
            except NoFile:
                return

    async def abandoned(self) -> list[str]:
        """Ids of all that was stored before the grace time, half uploads and audio still in use included."""
        before = ObjectId.from_datetime(datetime.now(UTC) - GRACE)
        async with wrapped():
            files = await self._files.distinct("_id", {"_id": {"$lt": before}})
            halves = await self._chunks.distinct("files_id", {"files_id": {"$lt": before}})
        return [str(file_id) for file_id in {*files, *halves}]
