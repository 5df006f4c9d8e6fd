"""Whether a stream whose recording is over has begun again: then those who subscribe now get a new session.

Its address is looked at once, for a short time. What cannot be read, a list that still stands where the recording
ended, and anything within a minute of that end (a cache may still serve the list of before) is no new beginning.
"""

from datetime import timedelta

from activities.capture import within
from activities.payloads import PlaylistSnapshot, Tail
from activities.ports import LiveSource, SourceFault, SourceGone, SourceRefused
from activities.records import SessionRecord
from activities.timeline import name_of
from kernel import Clock

SETTLED = timedelta(seconds=60)
LOOK_S = 3.0


class Comeback:
    """Looks at the address of a session that is over."""

    def __init__(self, source: LiveSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock

    async def __call__(self, session: SessionRecord) -> bool:
        """Whether another broadcast is offered there than the one that was recorded."""
        over = session.state in ("ready", "unavailable")
        if not over or session.tail is None or session.ended_at is None:
            return False
        if self._clock.hint(0) - session.ended_at < SETTLED:
            return False
        try:
            return goes_on_after(session.tail, await within(LOOK_S, self._source.playlist(session.url)))
        except (SourceGone, SourceFault, SourceRefused):
            return False


def goes_on_after(tail: Tail, snapshot: PlaylistSnapshot) -> bool:
    """Whether a list offers what a recording that ended at `tail` has not seen.

    A list that has ended too and holds the tail is the recorded one; one that is live has gone on, or begun anew,
    unless the tail is still its last segment.
    """
    listed = [Tail(segment.sequence, name_of(segment)) for segment in snapshot.segments]
    if not listed:
        return False
    return tail not in listed if snapshot.ended else tail != listed[-1]
