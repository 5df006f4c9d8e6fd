"""How one workflow sets another going: start what is needed, or publish the fan-out of what happened.

Both may be repeated at any time. The business fact is stored before; a workflow that is told reads it again.
"""

import re

import msgspec

from activities.payloads import FanoutInput, Session, Transcript, TranscriptInput, WatchInput
from activities.plans import (
    SHARED_PRIORITY,
    STREAM_FANOUT,
    STREAM_TRANSCRIPT,
    STREAM_WATCH,
    fanout_key,
    transcript_key,
    watch_key,
)
from kernel import Fatal, Publisher, WorkflowContext

STEP_PREFIX = re.compile(r"\A[a-z0-9_]{1,40}: ")


async def publish_fanout(publisher: Publisher, topic: str, source_id: str, round: int) -> None:
    """Have every waiting summary told that `topic` happened to its source."""
    await publisher.start_or_resume(
        STREAM_FANOUT.type,
        fanout_key(topic, source_id, round),
        FanoutInput(topic, source_id, round),
        round=round,
        priority=SHARED_PRIORITY,
    )


async def keep_going(publisher: Publisher, type: str, biz_key: str, input: msgspec.Struct, *, round: int) -> bool:
    """Make sure that the shared workflow of `biz_key` serves `round`.

    False while an older round is still being brought to its end: ask again shortly. Raises Fatal where the workflow
    was canceled, or completed for an older round: it can never serve this one.
    """
    started = await publisher.start_or_resume(type, biz_key, input, round=round, priority=SHARED_PRIORITY)
    instance = started.instance
    if instance.status == "canceled":
        raise Fatal(f"{biz_key} was canceled; subscribe again to start over")
    if instance.round >= round:
        return True
    if instance.status == "completed":
        raise Fatal(f"{biz_key} ended in round {instance.round} and cannot be resumed for round {round}")
    return False


async def keep_watching(publisher: Publisher, session: Session) -> bool:
    """Make sure that the session is being recorded; as `keep_going`."""
    wanted = WatchInput(session.session_id, session.round)
    return await keep_going(publisher, STREAM_WATCH.type, watch_key(session.session_id), wanted, round=session.round)


async def keep_recognising(publisher: Publisher, transcript: Transcript) -> bool:
    """Make sure that the transcript is being made; as `keep_going`."""
    wanted = TranscriptInput(transcript.transcript_id, transcript.round)
    key = transcript_key(transcript.transcript_id)
    return await keep_going(publisher, STREAM_TRANSCRIPT.type, key, wanted, round=transcript.round)


def failure_of(context: WorkflowContext, otherwise: str) -> str:
    """What went wrong, for people: the step's own words, without the step's name in front."""
    text = context.error or otherwise
    return STEP_PREFIX.sub("", text, count=1)
