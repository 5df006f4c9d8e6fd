"""The stable protocol of the four workflow types: plans, identities, topics, signals, permits and priorities.

All that a process needs which registers or looks up workflows but runs none; it imports no activity.
"""

from kernel import Plan

SUMMARY = Plan("summary", ("preprocess", "transcribe", "compose", "finalize"))
STREAM_WATCH = Plan("stream_watch", ("capture", "package"))
STREAM_TRANSCRIPT = Plan("stream_transcript", ("transcribe",))
STREAM_FANOUT = Plan("stream_fanout", ("deliver",))
PLANS = (SUMMARY, STREAM_WATCH, STREAM_TRANSCRIPT, STREAM_FANOUT)

SPEECH_RECOGNITION = "speech_recognition"
CONTENT_GENERATION = "content_generation"

STREAM_ENDED = "stream_ended"
STREAM_READY = "stream_ready"
STREAM_UNAVAILABLE = "stream_unavailable"
TRANSCRIPT_READY = "transcript_ready"
TRANSCRIPT_FAILED = "transcript_failed"

STREAM_HINT = "stream_hint"
STREAM_SETTLED = "stream_settled"
TRANSCRIPT_SETTLED = "transcript_settled"
RECORDING_GREW = "recording_grew"
SIGNAL_OF = {
    STREAM_ENDED: STREAM_SETTLED,
    STREAM_READY: STREAM_SETTLED,
    STREAM_UNAVAILABLE: STREAM_SETTLED,
    TRANSCRIPT_READY: TRANSCRIPT_SETTLED,
    TRANSCRIPT_FAILED: TRANSCRIPT_SETTLED,
}
"""Which signal the fan-out of a topic delivers."""

USER_PRIORITY = 0
SHARED_PRIORITY = 1
RECOVERY_PRIORITY = 3


def summary_key(summary_id: str) -> str:
    """The biz_key of a summary's workflow."""
    return f"{SUMMARY.type}:{summary_id}"


def watch_key(session_id: str) -> str:
    """The biz_key of the workflow that records a session."""
    return f"{STREAM_WATCH.type}:{session_id}"


def transcript_key(transcript_id: str) -> str:
    """The biz_key of a transcript's workflow."""
    return f"{STREAM_TRANSCRIPT.type}:{transcript_id}"


def fanout_key(topic: str, source_id: str, round: int) -> str:
    """The biz_key of one fan-out: what happened to which source in which of its rounds."""
    return f"{STREAM_FANOUT.type}:{topic}:{source_id}:{round}"


def settled_signal_id(topic: str, source_id: str, source_round: int, summary_id: str, summary_round: int) -> str:
    """The identity of one notification: the same fact told twice to the same round of a summary is one signal."""
    return f"{topic}:{source_id}:{source_round}:{summary_id}:{summary_round}"
