"""`stream_watch`: record one session from its first segment to its end, then make one recording of it.

A single media file is such a session too: it is read and converted as a whole.

Each call of `capture` is one poll; any worker goes on from the checkpoint and from what is already stored. That the
session became ready or unavailable is published by a finalizer, after it was stored.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import msgspec

from activities.alongside import Alongside
from activities.capture import CaptureLimits, Poll, Recorded, Recorder
from activities.payloads import Packaged, Session, WatchInput
from activities.plans import STREAM_ENDED, STREAM_READY, STREAM_UNAVAILABLE, STREAM_WATCH
from activities.ports import FileFound, Files, LiveSource, Packager, SourceFault, SourceGone, SourceRefused
from activities.starts import failure_of, publish_fanout
from activities.timeline import CapturePoint, Reel, beginning
from activities.uploads import is_upload
from kernel import (
    Definition,
    Fatal,
    Outcome,
    Publisher,
    RetryAfter,
    StaleRound,
    Step,
    StepContext,
    WorkflowCanceled,
    WorkflowContext,
)

FILE_AGAIN_S = 20.0
NEWS_S = 30.0
"""So much more of a recording is worth waking its transcription."""


@dataclass(frozen=True, slots=True)
class WatchPorts:
    """What recording a session needs."""

    source: LiveSource
    sessions: Recorder
    packager: Packager
    files: Files
    publisher: Publisher
    alongside: Alongside
    limits: CaptureLimits = field(default_factory=CaptureLimits)


def definition(ports: WatchPorts) -> Definition:
    """`stream_watch` on these ports."""
    return Definition(
        STREAM_WATCH.type,
        (
            Step("capture", partial(capture, ports), timeout_s=1800, max_retry=20),
            Step("package", partial(package, ports), timeout_s=1800, max_retry=3),
        ),
        success_finalizer=partial(announce_ready, ports),
        failure_finalizer=partial(announce_unavailable, ports),
    )


async def capture(ports: WatchPorts, ctx: StepContext) -> Outcome:
    """One poll of the stream; a directive until the stream is over. Its speech is recognised alongside."""
    session = await _current(ports, ctx)
    if session.state == "ended":
        outcome = Recorded("the stream ended", session.captured_s, len(session.gaps))
    elif is_upload(session.url):
        outcome = await _take_file(ports, session)
    else:
        outcome = await _stream_or_file(ports, session, ctx.load_checkpoint(CapturePoint), ctx.now())
    if isinstance(outcome, Recorded):
        await _tell_end(ports, session, outcome)
    return outcome


async def _stream_or_file(ports: WatchPorts, session: Session, known: CapturePoint | None, now: datetime) -> Outcome:
    try:
        return await _poll(ports, session, known, now)
    except FileFound:
        return await _take_file(ports, session)


async def _take_file(ports: WatchPorts, session: Session) -> Recorded:
    """A file is recorded at once. Its recording is referred to before the session has ended: nothing is packaged."""
    session_id, round = session.session_id, session.round
    if not session.media_id:
        await ports.sessions.mark(session_id, round, "live", file=True)
        try:
            packaged = await ports.files.record(session.url, session_id, round)
        except SourceRefused as refusal:
            raise Fatal(str(refusal)) from refusal
        except (SourceGone, SourceFault) as fault:
            raise RetryAfter(FILE_AGAIN_S, str(fault)) from fault
        await ports.sessions.store_progress(session_id, round, packaged.duration_s, [])
        await ports.sessions.attach_media(session_id, round, packaged)
        session = msgspec.structs.replace(session, captured_s=packaged.duration_s)
    await ports.sessions.mark(session_id, round, "ended")
    return Recorded("the whole file was read", session.captured_s)


async def _poll(ports: WatchPorts, session: Session, known: CapturePoint | None, now: datetime) -> Outcome:
    """What one poll comes to; the transcription hears of what it brought."""
    point = known or beginning(session.url, now)
    reel = Reel(point, session.gaps)
    reel.catch_up(await ports.sessions.captured(session.session_id, point.own_next - 1))
    outcome = await Poll(ports.source, ports.sessions, ports.limits, session, reel, now).run()
    if reel.point.begun and not point.begun:
        await ports.alongside.begin(session)
    elif (news := reel.recorded_s // NEWS_S) > session.captured_s // NEWS_S:
        await ports.alongside.tell(session, f"{news:.0f}")
    return outcome


async def _tell_end(ports: WatchPorts, session: Session, recorded: Recorded) -> None:
    """What there is now is all there will be: the transcription and, with it, the summaries need no more than that.

    They need not wait for the packaging. Where that fails, `announce_unavailable` tells them.
    """
    await ports.alongside.tell(session, "end")
    if recorded.recorded_s > 0:
        await publish_fanout(ports.publisher, STREAM_ENDED, session.session_id, session.round)


async def package(ports: WatchPorts, ctx: StepContext) -> Packaged:
    """Join what was captured; the reference to it is the last thing written."""
    session = await _current(ports, ctx)
    if session.media_id:
        return Packaged(session.media_id, session.duration_s, 0)
    if session.captured_s <= 0:
        raise Fatal("Nothing of this stream could be recorded.")
    try:
        packaged = await ports.packager.package(session.session_id, session.round)
    except SourceRefused as refusal:
        raise Fatal(str(refusal)) from refusal
    if packaged.duration_s <= 0:
        raise Fatal("The recording holds no audio.")
    await ports.sessions.attach_media(session.session_id, session.round, packaged)
    return packaged


async def announce_ready(ports: WatchPorts, ctx: WorkflowContext) -> None:
    """The recording is there: store it, then tell those who wait."""
    wanted = ctx.load_input(WatchInput)
    await ports.sessions.mark_ready(wanted.session_id, wanted.fencing_token)
    await publish_fanout(ports.publisher, STREAM_READY, wanted.session_id, wanted.fencing_token)


async def announce_unavailable(ports: WatchPorts, ctx: WorkflowContext) -> None:
    """There is no recording: store why, then tell those who wait."""
    wanted = ctx.load_input(WatchInput)
    reason = failure_of(ctx, "The stream could not be recorded.")
    with suppress(StaleRound):  # the next round has begun already; those who waited for this one must still be told
        await ports.sessions.mark_unavailable(wanted.session_id, wanted.fencing_token, reason)
    await publish_fanout(ports.publisher, STREAM_UNAVAILABLE, wanted.session_id, wanted.fencing_token)


async def _current(ports: WatchPorts, ctx: StepContext) -> Session:
    """The session, if it still serves the round of this workflow."""
    wanted = ctx.load_input(WatchInput)
    session = await ports.sessions.get(wanted.session_id)
    if session is None:
        raise WorkflowCanceled(f"The session {wanted.session_id} was removed.")
    if session.round != wanted.fencing_token:
        raise StaleRound(f"The session is in round {session.round}, not {wanted.fencing_token}.")
    return session
