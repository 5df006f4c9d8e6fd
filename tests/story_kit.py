"""The whole story on a real MongoDB and Redis: records, kernel and service; only the outside world is scripted."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from activities import stream_fanout, stream_transcript, stream_watch
from activities.adapters.quota import QuotaRecords
from activities.adapters.removals import Removals
from activities.adapters.request_keys import RequestKeys
from activities.adapters.sessions import SessionRecords
from activities.adapters.summaries import SummaryRecords
from activities.adapters.transcripts import TranscriptRecords
from activities.alongside import Alongside
from activities.comeback import Comeback
from activities.payloads import AudioWindow, Packaged, SpeechSegment, SpeechStatus, Usage, WindowPoint
from activities.plans import PLANS, summary_key
from activities.ports import SourceRefused
from activities.summary.definition import definition as summary_definition
from activities.summary.record import SummaryPorts
from app.dispatching import summary_dispatcher
from app.subscriptions import SubscriptionParts, Subscriptions
from app.views import SummaryView
from kernel import Clock, Instance, Parts, open_parts, workflow_id_of
from kernel.candidates import Candidates
from kernel.dispatch import Dispatcher
from kernel.intents import Intents
from kernel.model import FAR_FUTURE, TERMINAL
from kernel.mutex import Mutex
from kernel.projections import Projections
from kernel.testing import Fleet
from tests.unit.story import Files, Source, window

URL = "https://live.example/live/night-talk.m3u8"
MOST_CLAIMS = 300


@dataclass
class World:
    """The outside world. A show that is read again begins where it is: every list names all segments so far."""

    source: Any = field(default_factory=lambda: Source(window(0, 2), window(0, 4), window(0, 5, ended=True)))
    packager_errors: list[Exception] = field(default_factory=list)
    writer_errors: list[Exception] = field(default_factory=list)
    speech_errors: list[str] = field(default_factory=list)
    packaged: int = 0
    tasks: dict[str, str] = field(default_factory=dict)  # task id by key
    polls: dict[str, int] = field(default_factory=dict)
    written: int = 0
    reads: int = 1000  # characters that the writer reads at once
    noted: int = 0


class Packager:
    """Measures what the records hold."""

    def __init__(self, world: World, sessions: SessionRecords) -> None:
        self._world = world
        self._sessions = sessions

    async def package(self, session_id: str, round: int) -> Packaged:
        if self._world.packager_errors:
            raise self._world.packager_errors.pop()
        seconds = sum([one.duration_s async for one in self._sessions.segments(session_id)])
        self._world.packaged += 1
        return Packaged(f"media-{session_id}", seconds, 1000)


class Recordings:
    async def read(self, media_id: str) -> bytes:
        return media_id.encode()


class Windows:
    """Everything that was recorded, in one window, once that is over."""

    def __init__(self, sessions: SessionRecords) -> None:
        self._sessions = sessions

    async def next(self, session_id: str, point: WindowPoint, *, over: bool) -> AudioWindow | None:
        captured = await self._sessions.captured(session_id, -1)
        end_s = sum(one.duration_s for one in captured)
        if not over or end_s <= point.position_s:
            return None
        return AudioWindow(b"OggS", point.position_s, end_s, WindowPoint(len(captured), 0, end_s, end_s))


class Speech:
    """Takes a task once per key and completes it at its third poll."""

    name = "asr"
    whole = True

    def __init__(self, world: World) -> None:
        self._world = world

    async def submit(self, key: str, audio: bytes, *, language: str | None) -> str:
        return self._world.tasks.setdefault(key, f"task-{len(self._world.tasks)}")

    async def poll(self, task_id: str) -> SpeechStatus:
        if self._world.speech_errors:
            return SpeechStatus(task_id, "failed", error=self._world.speech_errors.pop())
        self._world.polls[task_id] = polls = self._world.polls.get(task_id, 0) + 1
        if polls < 3:
            return SpeechStatus(task_id, "running", progress=polls * 30.0)
        heard = [SpeechSegment(0.0, 4.0, "Tonight: why queues lie."), SpeechSegment(5.0, 9.0, "Then: leases.")]
        return SpeechStatus(task_id, "completed", progress=100.0, language="en", segments=heard, decoded_s=12.0)


class Writer:
    """Writes what was said."""

    model = "scripted"

    def parts(self, request: Any) -> int:
        said = sum(len(segment.text) for segment in request.segments)
        return -(-said // self._world.reads)

    def __init__(self, world: World) -> None:
        self._world = world

    async def write(self, request: Any) -> Any:
        if request.kind == "notes":
            self._world.noted += 1
            yield "".join(f"- {segment.text[:6]}" for segment in request.segments)
            return
        self._world.written += 1
        yield f"# {request.title}\n\n"
        if self._world.writer_errors:
            raise self._world.writer_errors.pop()
        for segment in request.segments:
            yield f"- {segment.text}\n"
        yield Usage(100, 20)


async def check_address(url: str) -> None:
    if "127.0.0.1" in url:
        raise SourceRefused("127.0.0.1 leads to a loopback address; only public hosts may be read.")


async def uploaded(url: str) -> bool:
    return True


@dataclass
class Story:
    """Everything a test of the story touches."""

    db: Any
    world: World
    parts: Parts
    fleet: Fleet
    sessions: SessionRecords
    transcripts: TranscriptRecords
    summaries: SummaryRecords
    dispatcher: Dispatcher
    subscriptions: Subscriptions
    projections: Projections

    async def subscribe(self, user_id: str = "li", url: str = URL, **options: Any) -> SummaryView:
        view, _ = await self.subscriptions.subscribe(user_id, url, **options)
        return view

    async def view(self, user_id: str, summary_id: str) -> SummaryView:
        found = await self.subscriptions.find(user_id, summary_id)
        assert found is not None
        return found

    async def settle(self) -> None:
        """Run all workflows to where no clock brings them further, time travel between; recovery works alongside."""
        for _ in range(MOST_CLAIMS):
            await self.dispatcher.recover()
            await self.subscriptions.purge()
            if not await self.turn():
                return
        raise AssertionError(f"not settled after {MOST_CLAIMS} claims: {await self.open_instances()}")

    async def turn(self) -> bool:
        """One claim of the workflow that is due next; False where none ever is."""
        found = await self.open_instances()
        if not found or found[0]["claimable_time"] >= FAR_FUTURE:
            return False
        await self.fleet.skip_to_due(found[0]["_id"])
        await self.fleet.claim_and_run(found[0]["_id"])
        return True

    async def until(self, user_id: str, summary_id: str, code: str) -> SummaryView:
        """Run claim by claim until the summary gives this reason for waiting."""
        for _ in range(MOST_CLAIMS):
            view = await self.view(user_id, summary_id)
            if view.reason and view.reason.code == code:
                return view
            await self.turn()
        raise AssertionError(f"{code} was never given; now {await self.view(user_id, summary_id)}")

    async def open_instances(self) -> list[dict[str, Any]]:
        condition = {"status": {"$nin": [str(status) for status in TERMINAL]}}
        return await self.db["workflow_instances"].find(condition).sort("claimable_time", 1).to_list(100)

    async def instance(self, biz_key: str) -> Instance:
        found = await self.parts.instances.get(workflow_id_of(biz_key))
        assert found is not None
        return found

    async def instance_of(self, summary_id: str) -> Instance:
        return await self.instance(summary_key(summary_id))

    async def all_instances(self) -> list[dict[str, Any]]:
        return await self.db["workflow_instances"].find({}).sort("_id", 1).to_list(100)

    def wait(self, **time: float) -> None:
        self.parts.clock.advance(timedelta(**time))


async def open_story(db: Any, redis: Any, prefix: str, clock: Clock, *, per_day: int = 100) -> Story:
    """The story, its indexes made."""
    world = World()
    parts = open_parts(db, redis, PLANS, prefix=prefix, clock=clock)
    projections, mutex, quota = Projections(db, clock), Mutex(redis, prefix), QuotaRecords(db, clock, per_day=per_day)
    sessions, transcripts = SessionRecords(db, clock), TranscriptRecords(db, clock, provider="asr", model="base")
    summaries, removals, keys = SummaryRecords(db, clock, quota), Removals(db, clock), RequestKeys(db, clock)
    intents = Intents(db["summaries"], clock)
    candidates = Candidates(redis, prefix, "summaries", clock)
    dispatcher = summary_dispatcher(intents, parts.publisher, candidates, mutex, summaries)
    for store in (parts, projections, intents, sessions, transcripts, summaries, removals, keys):
        await store.ensure_indexes()
    subscriptions = Subscriptions(
        SubscriptionParts(
            sessions=sessions,
            transcripts=transcripts,
            summaries=summaries,
            removals=removals,
            quota=quota,
            keys=keys,
            dispatcher=dispatcher,
            publisher=parts.publisher,
            snapshots=projections,
            check_address=check_address,
            uploaded=uploaded,
            begun_again=Comeback(_Show(world), clock),
            clock=clock,
            writer="scripted",
        )
    )
    publisher, packager = parts.publisher, Packager(world, sessions)
    files = Files(Packaged("media-file", 12.0, 900))
    alongside = Alongside(transcripts, publisher)
    definitions = [
        stream_watch.definition(stream_watch.WatchPorts(_Show(world), sessions, packager, files, publisher, alongside)),
        stream_transcript.definition(
            stream_transcript.TranscriptPorts(
                transcripts, sessions, Recordings(), Windows(sessions), {"asr": Speech(world)}, publisher
            )
        ),
        stream_fanout.definition(stream_fanout.FanoutPorts(summaries, publisher)),
        summary_definition(SummaryPorts(summaries, sessions, transcripts, Writer(world), publisher)),
    ]
    fleet = Fleet(parts, definitions, projections)
    return Story(db, world, parts, fleet, sessions, transcripts, summaries, dispatcher, subscriptions, projections)


class _Show:
    """The world's source, which a test may replace in the middle."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def playlist(self, url: str) -> Any:
        return await self._world.source.playlist(url)

    async def segment(self, segment: Any) -> bytes:
        return await self._world.source.segment(segment)
