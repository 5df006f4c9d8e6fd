"""What one reader of a summary has received, and what must be sent next. Pure: no clock, no I/O.

The invariant: what was sent as text since the latest `reset` equals the text of `done`. A reader that reconnects claims
to hold everything up to a position; the claim counts once the frames up to there have been read again in the same
generation, and until then nothing is sent that only makes sense on top of it. What cannot be proven is replaced.
"""

from typing import Protocol

import msgspec

from app.web.sse import Event
from kernel.stream import Position

ENDED = frozenset({"completed", "failed", "canceled"})
FROM_THE_RECORD = Position(0, 0)
"""Position of text that came from the record. No stream has this generation, so a claim of it is never confirmed."""

_encoder = msgspec.json.Encoder()


class Record(Protocol):
    """The parts of a summary's record that decide what is sent."""

    @property
    def round(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def text(self) -> str: ...


def record_json(record: Record) -> bytes:
    """The whole record."""
    return _encoder.encode(record)


def state_json(record: Record) -> bytes:
    """The record without its text."""
    fields = msgspec.to_builtins(record)
    return _encoder.encode({name: value for name, value in fields.items() if name not in ("text", "html")})


class Reader:
    """One connection. Each `on_…` takes news and returns the events to send for it."""

    def __init__(self, claim: Position | None = None) -> None:
        self.ended = False
        self._claim = claim
        self._at: Position | None = None  # the last frame read
        self._text: list[str] = []  # what the client holds, or will once its claim is confirmed
        self._round: int | None = None
        self._state = b""

    def on_record(self, record: Record) -> list[Event]:
        """The record was read. Another round restarts the text; an ended one finishes it."""
        switched = self._round not in (None, record.round)
        self._round = record.round
        events = self._restart() if switched else []
        state = state_json(record)
        if state != self._state:
            events.append(Event("state", state))
            self._state = state
        return events + self._finish(record) if record.state in ENDED else events

    def on_text(self, position: Position, text: str) -> list[Event]:
        """A text frame was read. Frames of one generation come in order, from its first."""
        events = [] if self._continues(position) else self._restart()
        self._at = position
        self._text.append(text)
        if self._claim is None:
            return [*events, _text(text, position)]
        if position.offset == self._claim.offset:
            self._claim = None
        elif position.offset > self._claim.offset:
            return events + self._replace("".join(self._text), position)
        return events

    def on_reset(self) -> list[Event]:
        """The stream began a new generation."""
        return self._restart()

    def on_quiet(self) -> list[Event]:
        """There is nothing more to read for now. A claim beyond what there is will not be confirmed any more."""
        if self._claim is None or self._at is None:
            return []
        return self._replace("".join(self._text), self._at)

    # ----

    def _continues(self, position: Position) -> bool:
        if self._at is not None:
            return position.generation == self._at.generation
        return self._claim is None or position.generation == self._claim.generation

    def _restart(self) -> list[Event]:
        """Forget the text. The client's position belongs to a generation that is gone, so it can do no harm."""
        dirty = bool(self._text) or self._claim is not None
        self._text, self._claim, self._at = [], None, None
        return [Event("reset")] if dirty else []

    def _replace(self, text: str, position: Position) -> list[Event]:
        """Exchange all text within a generation.

        The empty text moves the client's position away first: if the connection is cut after `reset`, it will not
        claim frames that it has just thrown away.
        """
        self._text, self._claim = [text], None
        events = [_text("", FROM_THE_RECORD), Event("reset")]
        return [*events, _text(text, position)] if text else events

    def _finish(self, record: Record) -> list[Event]:
        self.ended = True
        return [*self._rest(record.text), Event("done", record_json(record))]

    def _rest(self, final: str) -> list[Event]:
        sent = "".join(self._text)
        if self._claim is not None or not final.startswith(sent):
            return self._replace(final, FROM_THE_RECORD)
        return [_text(final[len(sent) :], FROM_THE_RECORD)] if len(sent) < len(final) else []


def _text(text: str, position: Position) -> Event:
    return Event("text", _encoder.encode({"t": text}), str(position))
