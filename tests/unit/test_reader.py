"""The text since the latest `reset` is the text of `done`, whatever is cut, emptied, repeated or late."""

import json
from dataclasses import dataclass, field

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from app.web.reader import ENDED, Reader
from app.web.sse import Event
from kernel.stream import Position


class Record(msgspec.Struct, frozen=True):
    """The least a record has."""

    round: int = 1
    state: str = "writing"
    text: str = ""
    html: str = ""


@dataclass
class Client:
    """A browser: what it shows, and the last id it saw."""

    text: str = ""
    last_id: str = ""
    done: dict | None = None
    names: list[str] = field(default_factory=list)

    def receive(self, event: Event) -> None:
        data = json.loads(event.data)
        self.names.append(event.name)
        self.last_id = event.id or self.last_id
        if event.name == "reset":
            self.text = ""
        elif event.name == "text":
            self.text += data["t"]
        elif event.name == "done":
            self.done = data


def received(events: list[Event], client: Client | None = None) -> Client:
    client = client or Client()
    for event in events:
        client.receive(event)
    return client


def names(events: list[Event]) -> list[str]:
    return [event.name for event in events]


def text_of(events: list[Event]) -> str:
    return received(events).text


# ---- by example ----


def test_a_reader_from_the_start_gets_each_frame_once_and_then_done():
    reader = Reader()
    events = reader.on_record(Record())
    events += reader.on_text(Position(7, 0), "Hello ")
    events += reader.on_text(Position(7, 1), "world")
    events += reader.on_record(Record(state="completed", text="Hello world"))
    assert names(events) == ["state", "text", "text", "state", "done"]
    assert [event.id for event in events if event.name == "text"] == ["7-0", "7-1"]
    assert reader.ended


def test_a_late_reader_gets_the_whole_text_from_the_record():
    events = Reader().on_record(Record(state="completed", text="All of it."))
    assert names(events) == ["state", "text", "done"]
    assert text_of(events) == "All of it."


def test_frames_that_were_not_read_any_more_are_added_from_the_record():
    reader = Reader()
    events = reader.on_record(Record()) + reader.on_text(Position(7, 0), "Hello ")
    events += reader.on_record(Record(state="completed", text="Hello world"))
    assert "reset" not in names(events)
    assert text_of(events) == "Hello world"


def test_text_that_differs_from_the_record_is_replaced_before_done():
    reader = Reader()
    events = reader.on_record(Record()) + reader.on_text(Position(7, 0), "Something else")
    events += reader.on_record(Record(state="completed", text="The text"))
    assert names(events)[-3:] == ["reset", "text", "done"]
    assert text_of(events) == "The text"


def test_a_failed_summary_takes_its_unfinished_text_back():
    reader = Reader()
    events = reader.on_record(Record()) + reader.on_text(Position(7, 0), "Half a sen")
    events += reader.on_record(Record(state="failed"))
    assert text_of(events) == ""
    assert names(events)[-2:] == ["reset", "done"]


def test_a_reader_that_comes_back_continues_behind_its_last_frame():
    reader = Reader(Position(7, 1))
    events = reader.on_record(Record())
    events += reader.on_text(Position(7, 0), "one ") + reader.on_text(Position(7, 1), "two ")
    assert names(events) == ["state"]
    events = reader.on_text(Position(7, 2), "three")
    events += reader.on_record(Record(state="completed", text="one two three"))
    assert names(events) == ["text", "state", "done"]
    assert json.loads(events[0].data) == {"t": "three"}


def test_a_claim_of_another_generation_is_reset():
    reader = Reader(Position(6, 9))
    events = reader.on_record(Record()) + reader.on_text(Position(7, 0), "new")
    assert names(events) == ["state", "reset", "text"]


def test_a_claim_beyond_the_frames_there_are_is_given_up_when_they_end():
    reader = Reader(Position(7, 5))
    events = reader.on_record(Record()) + reader.on_text(Position(7, 0), "one ")
    assert names(events) == ["state"]
    events = reader.on_quiet()
    assert names(events) == ["text", "reset", "text"]
    assert (events[0].id, events[0].data) == ("0-0", b'{"t":""}')
    assert events[2].id == "7-0"


def test_a_claim_is_kept_while_there_is_nothing_to_compare_it_with():
    reader = Reader(Position(7, 0))
    assert names(reader.on_record(Record()) + reader.on_quiet()) == ["state"]
    assert names(reader.on_text(Position(7, 0), "one ")) == []
    assert names(reader.on_text(Position(7, 1), "two")) == ["text"]


def test_an_unproven_claim_at_the_end_gets_the_whole_text():
    events = Reader(Position(7, 3)).on_record(Record(state="completed", text="All of it."))
    assert names(events) == ["state", "text", "reset", "text", "done"]
    assert text_of(events) == "All of it."


def test_text_from_the_record_is_never_taken_for_frames():
    events = Reader().on_record(Record(state="completed", text="All of it."))
    claim = Position.parse(events[1].id)
    back = Reader(claim)
    again = back.on_record(Record(round=2)) + back.on_text(Position(8, 0), "Round two")
    assert names(again) == ["state", "reset", "text"]


def test_another_round_begins_with_a_reset():
    reader = Reader()
    events = reader.on_record(Record()) + reader.on_text(Position(7, 0), "first")
    events += reader.on_record(Record(round=2, state="transcribing"))
    assert names(events)[-2:] == ["reset", "state"]
    assert text_of(events) == ""


def test_state_is_sent_only_when_it_has_changed_and_without_the_text():
    reader = Reader()
    first = reader.on_record(Record(text="part", html="<p>part</p>"))
    assert json.loads(first[0].data) == {"round": 1, "state": "writing"}
    assert reader.on_record(Record(text="part of", html="<p>part of</p>")) == []


# ---- by chance ----


@dataclass
class World:
    """A record and a client stream that live on while connections come and go."""

    client: Client = field(default_factory=Client)
    record: Record = field(default_factory=Record)
    generation: int = 100
    frames: list[str] = field(default_factory=list)
    reader: Reader | None = None
    read: int = 0
    seen: int = 0

    def connect(self) -> None:
        self.reader = Reader(Position.parse(self.client.last_id))
        self.read, self.seen = 0, self.generation
        self.tell(self.reader.on_record(self.record))

    def tell(self, events: list[Event], cut: int | None = None) -> None:
        received(events if cut is None else events[:cut], self.client)

    def news(self) -> list[Event]:
        """What the forwarder reads next, as `ClientStreams.follow` would give it."""
        assert self.reader
        if self.seen != self.generation:
            self.seen, self.read = self.generation, 0
            return self.reader.on_reset()
        if self.read == len(self.frames):
            return self.reader.on_quiet()
        self.read += 1
        return self.reader.on_text(Position(self.generation, self.read - 1), self.frames[self.read - 1])

    def act(self, act: tuple) -> None:
        match act:
            case ("write", text):
                self.frames.append(text)
            case ("reset", _):
                self.generation, self.frames = self.generation + 1, []
            case ("read", None):
                self.tell(self.news())
            case ("read and cut", sent):
                self.tell(self.news(), cut=sent)
                self.connect()
            case ("reload", None):
                self.client = Client()
                self.connect()
            case ("look", None):
                assert self.reader
                self.tell(self.reader.on_record(self.record))
            case ("next round", _):
                self.record = Record(round=self.record.round + 1)
                self.act(("reset", None))
                assert self.reader
                self.tell(self.reader.on_record(self.record))
                self.seen, self.read = self.generation, 0

    def finish(self, state: str, surplus: str) -> None:
        text = "".join(self.frames) + surplus if state == "completed" else ""
        self.record = Record(self.record.round, state, text)
        assert self.reader
        self.tell(self.reader.on_record(self.record))


acts = st.one_of(
    st.tuples(st.just("write"), st.text(max_size=3)),
    st.tuples(st.just("read"), st.none()),
    st.tuples(st.just("read"), st.none()),
    st.tuples(st.just("read and cut"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["reset", "next round", "look", "reload"]), st.none()),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(acts, max_size=40), st.sampled_from(sorted(ENDED)), st.sampled_from(["", "", "!", " more"]))
def test_the_text_since_the_latest_reset_is_the_text_of_done(chosen: list[tuple], state: str, surplus: str):
    world = World()
    world.connect()
    for act in chosen:
        world.act(act)
    world.finish(state, surplus)
    assert world.client.done is not None
    assert world.client.text == world.client.done["text"] == world.record.text


@settings(max_examples=200, deadline=None)
@given(st.lists(acts, max_size=30), st.integers(0, 6))
def test_a_connection_cut_anywhere_in_the_end_still_ends_with_the_text(chosen: list[tuple], cut: int):
    world = World()
    world.connect()
    for act in chosen:
        world.act(act)
    world.record = Record(world.record.round, "completed", "".join(world.frames) + "?")
    assert world.reader
    world.tell(world.reader.on_record(world.record), cut=cut)
    if world.client.done is None:
        world.connect()
    assert world.client.text == world.record.text
