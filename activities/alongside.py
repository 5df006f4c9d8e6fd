"""The transcription that goes along with a recording: begun when the stream is live, told when there is more of it.

Neither is needed for the result: a transcript that was not begun is begun by who waits for it, and one that was not
told looks for itself.
"""

from contextlib import suppress

from activities.payloads import Session
from activities.plans import RECORDING_GREW, transcript_key
from activities.ports import Transcripts
from activities.starts import keep_recognising
from kernel import Fatal, Publisher, Signal, workflow_id_of


class Alongside:
    """What a recording does for the session's transcript under the settings in force."""

    def __init__(self, transcripts: Transcripts, publisher: Publisher) -> None:
        self._transcripts = transcripts
        self._publisher = publisher

    async def begin(self, session: Session) -> None:
        """See that the session's speech is recognised from now on."""
        transcript = await self._transcripts.ensure(session.session_id)
        with suppress(Fatal):  # it cannot be transcribed; the recording goes on, and who waits is told why
            await keep_recognising(self._publisher, transcript)

    async def tell(self, session: Session, news: str) -> None:
        """Wake the transcript: there is more to hear. The same `news` told again is told once."""
        transcript = await self._transcripts.ensure(session.session_id)
        await self._publisher.deliver_signal(
            Signal(
                signal_id=f"recorded:{session.session_id}:{session.round}:{transcript.transcript_id}:{transcript.round}"
                f":{news}",
                workflow_id=workflow_id_of(transcript_key(transcript.transcript_id)),
                signal_type=RECORDING_GREW,
                wait_key=session.session_id,
                generation=transcript.round,
            )
        )
