"""Single media files, uploaded or at a web address, as recordings: 16 kHz mono Opus like those of streams.

Only bytes are handed to the media library, and only as one of the listed containers (`decoding.py`). A file is read
and converted again after a death; nothing of it is kept but the recording.
"""

import tempfile
from typing import IO

from activities.adapters.decoding import NoAudio, SampleDecoder, Undecodable
from activities.adapters.fetch import Fetcher
from activities.adapters.media import MAX_RECORDING_S, pieces
from activities.adapters.opus import OpusTrack
from activities.adapters.recordings import GridRecordings, new_media_id
from activities.payloads import Packaged
from activities.ports import RecordingMissing, SourceRefused
from activities.uploads import is_upload
from kernel import in_thread

MAX_FILE_BYTES = 4 * 1024**3
DOWNLOAD_TIMEOUT_S = 1500.0


class MediaFiles:
    """The port `Files`."""

    def __init__(self, fetcher: Fetcher, uploads: GridRecordings, recordings: GridRecordings) -> None:
        self._fetcher = fetcher
        self._uploads = uploads
        self._recordings = recordings

    async def record(self, url: str, session_id: str, round: int) -> Packaged:
        """Store the sound of the file at `url` as a recording of the session."""
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as file:
            await self._read(url, source)
            source.seek(0)
            seconds = await in_thread(convert, source, file)
            media_id = new_media_id(session_id, round)
            size = await self._recordings.store(media_id, pieces(file))
        return Packaged(media_id=media_id, duration_s=seconds, size_bytes=size)

    async def _read(self, url: str, file: IO[bytes]) -> None:
        if not is_upload(url):
            await self._fetcher.download(url, file, limit_bytes=MAX_FILE_BYTES, timeout_s=DOWNLOAD_TIMEOUT_S)
            return
        try:
            async for piece in self._uploads.open_range(url, 0, await self._uploads.size(url)):
                await in_thread(file.write, piece)
        except RecordingMissing as error:
            raise SourceRefused("The uploaded file is not stored any more; upload it again.") from error


def convert(source: IO[bytes], file: IO[bytes]) -> float:
    """Write the sound of a media file as Ogg Opus; its length in seconds. Blocking. Raises SourceRefused."""
    track, decoder = OpusTrack(file), SampleDecoder()
    try:
        for samples in decoder.decode(source, MAX_RECORDING_S):
            track.append(samples)
    except (NoAudio, Undecodable) as error:
        raise SourceRefused(f"The file cannot be heard: {error}.") from error
    for samples in decoder.restart():
        track.append(samples)
    track.close()
    if not track.seconds:
        raise SourceRefused("The file cannot be heard: no sound could be decoded.")
    return track.seconds
