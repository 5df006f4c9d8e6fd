"""The time line of a recording that is being made: what was kept, what was lost, and what comes next. Pure.

Segments get a number of their own that only grows, whatever the encoder's numbers do; a segment's place in the time
line follows from the lengths before it, gaps included. Nothing is taken twice, and nothing is lost without a gap.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from urllib.parse import urlsplit

import msgspec

from activities.payloads import CaptureCheckpoint, Gap, MediaSegment, PlaylistSnapshot, Tail

EPSILON_S = 0.05  # durations are rounded in playlists


class CapturePoint(CaptureCheckpoint, frozen=True):
    """Where the recording stands, with what is needed to tell an encoder's restart from an old list."""

    offset: int = 0  # our number of a segment, less the playlist's
    begun: bool = False  # the first segment has been listed
    last_name: str = ""  # file name and range of the segment before `next_sequence`
    splice: bool = False  # the next segment does not join the one before it
    quiet: int = 0  # consecutive polls without news
    gone_since: datetime | None = None
    head_tries: int = 0  # how often the next segment could not be read

    @property
    def own_next(self) -> int:
        """The number that the next segment gets."""
        return self.next_sequence + self.offset


class CapturedSegment(msgspec.Struct, frozen=True):
    """What is known of a stored segment. `sequence` is ours, `source_sequence` the playlist's."""

    sequence: int
    source_sequence: int
    address: str
    start_s: float
    duration_s: float


def address_of(segment: MediaSegment) -> str:
    """Where a segment lies, without its query: tokens there change from list to list."""
    parts = urlsplit(segment.url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}{_range_of(segment)}"


def name_of(segment: MediaSegment) -> str:
    """The file name and range of a segment: what stays the same under another path or host."""
    return urlsplit(segment.url).path.rpartition("/")[2] + _range_of(segment)


def _range_of(segment: MediaSegment) -> str:
    return "#{}@{}".format(*segment.byte_range) if segment.byte_range else ""


def beginning(url: str, now: datetime) -> CapturePoint:
    """The point of a recording that has not begun."""
    return CapturePoint(url, next_sequence=0, position_s=0.0, last_news_at=now, started_at=now)


class Reel:
    """A recording as far as one call has taken it."""

    def __init__(self, point: CapturePoint, gaps: Sequence[Gap]) -> None:
        self.point = point
        self.gaps = [gap for gap in gaps if gap.start_s < point.position_s - EPSILON_S]
        self._published = list(gaps)

    @property
    def recorded_s(self) -> float:
        """Seconds that were really recorded."""
        return max(self.point.position_s - sum(gap.duration_s for gap in self.gaps), 0.0)

    @property
    def tail(self) -> Tail | None:
        """The last segment that was kept or given up."""
        return Tail(self.point.next_sequence - 1, self.point.last_name) if self.point.last_name else None

    # ---- what an earlier call left ----

    def catch_up(self, captured: Iterable[CapturedSegment]) -> None:
        """Go beyond segments that were stored after the checkpoint, or without one; holes between them are gaps."""
        for segment in captured:
            if segment.start_s > self.point.position_s + EPSILON_S:
                self._reopen(segment.start_s)
            self._set(
                next_sequence=segment.source_sequence + 1,
                offset=segment.sequence - segment.source_sequence,
                position_s=segment.start_s + segment.duration_s,
                stored=self.point.stored + 1,
                last_name=segment.address.rpartition("/")[2],
                begun=True,
                head_tries=0,
            )

    def _reopen(self, until_s: float) -> None:
        """The hole up to `until_s`, with the reasons that were published for it."""
        start_s = self.point.position_s
        known = [gap for gap in self._published if start_s - EPSILON_S <= gap.start_s < until_s - EPSILON_S]
        self.gaps += known or [Gap(start_s, until_s - start_s, "not recorded")]

    # ---- what a playlist says ----

    def answered(self, media_url: str) -> None:
        """The playlist could be read."""
        self._set(media_url=media_url, faults=0, gone_since=None)

    def unanswered(self, entrance_url: str, now: datetime, *, gone: bool) -> None:
        """The playlist could not be read; the next poll goes through the entrance again."""
        self._set(
            media_url=entrance_url,
            faults=self.point.faults + 1,
            quiet=self.point.quiet + 1,
            gone_since=(self.point.gone_since or now) if gone else None,
        )

    def heard(self, now: datetime, *, news: bool) -> None:
        """Whether the list grew."""
        self._set(quiet=0, last_news_at=now) if news else self._set(quiet=self.point.quiet + 1)

    def begin(self, first_sequence: int) -> None:
        """The first list: the recording begins with its oldest segment, which becomes number 0."""
        self._set(next_sequence=first_sequence, offset=-first_sequence, begun=True)

    def renumber(self, first_sequence: int) -> None:
        """The encoder counts anew from `first_sequence`; our numbers go on."""
        self._set(next_sequence=first_sequence, offset=self.point.own_next - first_sequence, splice=True, last_name="")

    def is_other_count(self, snapshot: PlaylistSnapshot) -> bool:
        """Whether the list's numbers are not those we know: another file stands where our last segment stood."""
        last = [s for s in snapshot.segments if s.sequence == self.point.next_sequence - 1]
        return bool(last and self.point.last_name and name_of(last[0]) != self.point.last_name)

    def falls_back(self, snapshot: PlaylistSnapshot) -> bool:
        """Whether the list ends before our last segment: an old copy of it, or a restart."""
        return snapshot.segments[-1].sequence < self.point.next_sequence - 1

    def fresh(self, snapshot: PlaylistSnapshot) -> list[MediaSegment]:
        """The segments that have not been taken yet."""
        return [segment for segment in snapshot.segments if segment.sequence >= self.point.next_sequence]

    # ---- what became of a segment ----

    def reach(self, sequence: int, typical_s: float, longest_s: float) -> None:
        """Go to `sequence`; the numbers passed over are a gap, unless no stream could have been that long."""
        missed = sequence - self.point.next_sequence
        if missed <= 0:
            return
        if missed * typical_s > longest_s:
            self.renumber(sequence)
        else:
            self._lose(missed * typical_s, "no longer offered")
            self._set(next_sequence=sequence, last_name="")

    def placed(self, segment: MediaSegment) -> MediaSegment:
        """The segment under our number, marked where it does not join the one before."""
        spliced = segment.discontinuity or self.point.splice
        return msgspec.structs.replace(segment, sequence=segment.sequence + self.point.offset, discontinuity=spliced)

    def keep(self, segment: MediaSegment) -> None:
        """The segment was stored."""
        self._set(position_s=self.point.position_s + segment.duration_s, stored=self.point.stored + 1, splice=False)
        self._pass(segment)

    def miss(self, segment: MediaSegment, reason: str) -> None:
        """The segment is lost: a gap of its length."""
        self._lose(segment.duration_s, reason)
        self._pass(segment)

    def try_again(self) -> None:
        """The next segment could not be read this time."""
        self._set(head_tries=self.point.head_tries + 1)

    def _pass(self, segment: MediaSegment) -> None:
        self._set(next_sequence=segment.sequence + 1, last_name=name_of(segment), head_tries=0)

    def _lose(self, duration_s: float, reason: str) -> None:
        start_s, last = self.point.position_s, self.gaps[-1] if self.gaps else None
        if last and last.reason == reason and abs(last.start_s + last.duration_s - start_s) < EPSILON_S:
            self.gaps[-1] = Gap(last.start_s, last.duration_s + duration_s, reason)
        else:
            self.gaps.append(Gap(start_s, duration_s, reason))
        self._set(position_s=start_s + duration_s, splice=True)

    def _set(self, **changes: object) -> None:
        self.point = msgspec.structs.replace(self.point, **changes)
