"""The only place where ports meet adapters: what each role is made of, opened and closed in order."""

import inspect
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx

from activities import stream_fanout, stream_transcript, stream_watch
from activities.adapters.budget import Budget, counter
from activities.adapters.fetch import Fetcher
from activities.adapters.files import MediaFiles
from activities.adapters.guard import AddressGuard
from activities.adapters.hls import HlsSource
from activities.adapters.media import OggOpusPackager
from activities.adapters.quota import QuotaRecords
from activities.adapters.recordings import UPLOADS, GridRecordings
from activities.adapters.removals import Removals
from activities.adapters.request_keys import RequestKeys
from activities.adapters.sessions import SessionRecords
from activities.adapters.speech import AsrClient
from activities.adapters.speech_results import SpeechResults
from activities.adapters.summaries import SummaryRecords
from activities.adapters.sweeps import Sweeps
from activities.adapters.transcription import TranscriptionEndpoint
from activities.adapters.transcripts import TranscriptRecords
from activities.adapters.windows import SegmentWindows
from activities.adapters.writer import ChatWriter, read_price
from activities.alongside import Alongside
from activities.comeback import Comeback
from activities.plans import CONTENT_GENERATION, PLANS, SPEECH_RECOGNITION
from activities.ports import Speech
from activities.summary.definition import definition as summary_definition
from activities.summary.record import SummaryPorts
from app.accounts import Accounts
from app.acts import Audit, operator_acts
from app.asr.tasks import AsrTasks
from app.dispatching import summary_dispatcher
from app.relations import Relations
from app.secret import secret_of
from app.settings import Settings, SettingsError
from app.stream_hooks import StreamHooks
from app.subscriptions import SubscriptionParts, Subscriptions
from app.throttle import Throttle
from app.web.parts import Probe, WebParts
from app.web.probes import http_probe, mongo_probe, redis_probe
from kernel import Clock, Definition, Limits, Parts, open_parts
from kernel.broker import open_redis
from kernel.candidates import Candidates
from kernel.dispatch import Dispatcher
from kernel.driver import Database, open_database, open_mongo
from kernel.intents import Intents
from kernel.mutex import Mutex
from kernel.projections import Projections
from kernel.repairs import Repairs
from kernel.worker import Pace, Worker

PERMITS = {SPEECH_RECOGNITION: Limits(4, 2), CONTENT_GENERATION: Limits(4, 2)}
"""Limits until an operator changes them: at once, starts a second."""


@dataclass(frozen=True)
class Records:
    """The business stores over one database."""

    sessions: SessionRecords
    transcripts: TranscriptRecords
    quota: QuotaRecords
    summaries: SummaryRecords
    removals: Removals
    keys: RequestKeys
    recordings: GridRecordings
    uploads: GridRecordings
    heard: SpeechResults


@dataclass(frozen=True)
class Ground:
    """What web and worker share: connections, the kernel's parts, the records, the subscription service."""

    settings: Settings
    database: Database
    redis: Any
    parts: Parts
    projections: Projections
    mutex: Mutex
    records: Records
    fetcher: Fetcher
    dispatcher: Dispatcher
    subscriptions: Subscriptions


@asynccontextmanager
async def ground(settings: Settings) -> AsyncGenerator[Ground]:
    """Open what every role stands on; indexes are made where they are missing."""
    async with AsyncExitStack() as stack:
        client = open_mongo(settings.mongo_url, driver=settings.mongo_driver, timeout_s=settings.mongo_timeout_seconds)
        stack.push_async_callback(_close_client, client)
        database = open_database(client, settings.mongo_database)
        redis = open_redis(settings.redis_url)
        stack.push_async_callback(redis.aclose)
        guard = AddressGuard(settings.allow_hosts.split(","))
        fetcher = Fetcher(guard)
        stack.push_async_callback(fetcher.aclose)
        opened = _ground(settings, database, redis, guard, fetcher)
        await _ensure_indexes(opened)
        yield opened


def _ground(settings: Settings, database: Database, redis: Any, guard: AddressGuard, fetcher: Fetcher) -> Ground:
    prefix = settings.redis_prefix
    parts = open_parts(
        database, redis, PLANS, prefix=prefix, permit_lease_s=settings.permit_lease_seconds, limits=PERMITS
    )
    projections, mutex = Projections(database, parts.clock), Mutex(redis, prefix)
    records = _records(settings, database, parts)
    intents = Intents(database["summaries"], parts.clock)
    candidates = Candidates(redis, prefix, "summaries", parts.clock)
    dispatcher = summary_dispatcher(intents, parts.publisher, candidates, mutex, records.summaries)
    service = _subscriptions(settings, parts, projections, records, guard, fetcher, dispatcher)
    return Ground(settings, database, redis, parts, projections, mutex, records, fetcher, dispatcher, service)


def _records(settings: Settings, database: Database, parts: Parts) -> Records:
    clock = parts.clock
    quota = QuotaRecords(database, clock, per_day=settings.quota_per_day)
    return Records(
        sessions=SessionRecords(database, clock),
        transcripts=_transcripts(settings, database, clock),
        quota=quota,
        summaries=SummaryRecords(database, clock, quota),
        removals=Removals(database, clock),
        keys=RequestKeys(database, clock),
        recordings=GridRecordings(database),
        uploads=GridRecordings(database, UPLOADS),
        heard=SpeechResults(database, clock),
    )


def _subscriptions(
    settings: Settings,
    parts: Parts,
    projections: Projections,
    records: Records,
    guard: AddressGuard,
    fetcher: Fetcher,
    dispatcher: Dispatcher,
) -> Subscriptions:
    return Subscriptions(
        SubscriptionParts(
            sessions=records.sessions,
            transcripts=records.transcripts,
            summaries=records.summaries,
            removals=records.removals,
            quota=records.quota,
            keys=records.keys,
            dispatcher=dispatcher,
            publisher=parts.publisher,
            snapshots=projections,
            check_address=guard.check,
            uploaded=records.uploads.holds,
            begun_again=Comeback(HlsSource(fetcher), parts.clock),
            clock=parts.clock,
            writer=settings.openai_model,
            streams_per_person=settings.streams_per_person,
            titles={stream.url: stream.title for stream in settings.suggested_streams},
        )
    )


async def _ensure_indexes(opened: Ground) -> None:
    records = opened.records
    intents = Intents(opened.database["summaries"], opened.parts.clock)
    stores = (opened.parts, opened.projections, intents, records.sessions, records.transcripts, records.quota)
    for store in (*stores, records.summaries, records.removals, records.keys, records.heard):
        await store.ensure_indexes()


async def _close_client(client: Any) -> None:
    closing = client.close()
    if inspect.isawaitable(closing):
        await closing


# ---- the web ----


@asynccontextmanager
async def web_parts(settings: Settings) -> AsyncGenerator[WebParts]:
    """What `baton web` is made of."""
    async with ground(settings) as opened, httpx.AsyncClient(trust_env=False) as client:
        parts, subscriptions = opened.parts, opened.subscriptions
        accounts = Accounts(opened.database, parts.clock)
        await accounts.prepare()
        audit = Audit(opened.database, parts.clock)
        await audit.ensure_indexes()
        acts = operator_acts(subscriptions, parts.instances, opened.projections, audit)
        yield WebParts(
            settings=settings,
            secret=secret_of(settings),
            accounts=accounts,
            sign_ins=Throttle(opened.redis, settings.redis_prefix, "sign-in", tries=10, seconds=300),
            subscriptions=subscriptions,
            hooks=StreamHooks(opened.records.sessions, parts.publisher, parts.clock),
            streams=parts.streams,
            recordings=opened.records.recordings,
            uploads=opened.records.uploads,
            projections=opened.projections,
            lanes=parts.lanes,
            permits=parts.permits,
            permit_limits=parts.limits,
            probes={
                "mongo": mongo_probe(opened.database),
                "redis": redis_probe(opened.redis),
                "asr": _speech_probe(client, settings),
                "writer": http_probe(client, models_url(settings.openai_base_url), settings.openai_api_key),
            },
            acts=cast(Any, acts),
            audit=audit.of,
            signals=parts.inbox.of,
            related=Relations(opened.projections, opened.records.transcripts),
            speech_tasks=AsrTasks(opened.database, parts.clock, settings.lease_seconds).counts,
        )


def _speech_probe(client: httpx.AsyncClient, settings: Settings) -> Probe:
    """Whether what recognises new streams works."""
    if url := models_url(settings.transcription_base_url):
        return http_probe(client, url, settings.transcription_api_key)
    return http_probe(client, f"{settings.asr_url}/healthz" if settings.asr_url else "")


def models_url(base_url: str) -> str:
    """Where an OpenAI-compatible server lists its models; empty where none is set."""
    return f"{base_url.rstrip('/')}/models" if base_url else ""


# ---- the worker ----


@asynccontextmanager
async def worker(settings: Settings) -> AsyncGenerator[Worker]:
    """What `baton worker` is made of."""
    async with ground(settings) as opened, AsyncExitStack() as stack:
        records = opened.records
        speech, writer = _speech(settings, records.heard), _writer(settings)
        for adapter in (*speech, writer):
            stack.push_async_callback(adapter.aclose)
        sweeps = Sweeps(
            records.sessions, records.transcripts, records.recordings, records.uploads, opened.parts.clock, opened.mutex
        )
        repairs = Repairs(opened.parts.instances, opened.projections, opened.mutex)
        yield Worker(
            settings.worker_name or f"{socket.gethostname()}-{os.getpid()}",
            opened.parts,
            _definitions(opened, speech, writer),
            opened.projections,
            opened.mutex,
            slots=settings.worker_slots,
            pace=Pace(settings.lease_seconds, settings.poll_seconds, settings.scan_seconds),
            recover=(opened.dispatcher.recover, opened.subscriptions.purge, repairs.run_in_turn, sweeps.run_in_turn),
        )


def _transcripts(settings: Settings, database: Database, clock: Clock) -> TranscriptRecords:
    """New transcripts are made by the endpoint where one is set, else by the speech service."""
    if settings.transcription_base_url:
        name, model = TranscriptionEndpoint.name, settings.transcription_model
    else:
        name, model = AsrClient.name, settings.asr_model
    return TranscriptRecords(database, clock, provider=name, model=model)


def _speech(settings: Settings, heard: SpeechResults) -> list[AsrClient | TranscriptionEndpoint]:
    """Every provider that is set up: transcripts that were begun with another one go on with it."""
    providers: list[AsrClient | TranscriptionEndpoint] = [AsrClient(settings.asr_url)] if settings.asr_url else []
    if url := settings.transcription_base_url:
        key, model = settings.transcription_api_key, settings.transcription_model
        providers.append(TranscriptionEndpoint(url, key, model, heard))
    return providers


def _writer(settings: Settings) -> ChatWriter:
    try:
        count = counter(settings.openai_tokenizer)
    except ValueError as error:
        raise SettingsError(f"BATON_OPENAI_TOKENIZER is not accepted: {error}") from error
    return ChatWriter(
        settings.openai_base_url,
        settings.openai_api_key,
        settings.openai_model,
        budget=Budget(settings.openai_context_tokens, count),
        price=read_price(settings.openai_prices),
    )


def _definitions(opened: Ground, speech: Sequence[Speech], writer: ChatWriter) -> list[Definition]:
    records, publisher = opened.records, opened.parts.publisher
    windows = SegmentWindows(records.sessions.segments)
    packager = OggOpusPackager(records.sessions.segments, records.recordings)
    return [
        stream_watch.definition(
            stream_watch.WatchPorts(
                HlsSource(opened.fetcher),
                records.sessions,
                packager,
                MediaFiles(opened.fetcher, records.uploads, records.recordings),
                publisher,
                Alongside(records.transcripts, publisher),
            )
        ),
        stream_transcript.definition(
            stream_transcript.TranscriptPorts(
                records.transcripts,
                records.sessions,
                records.recordings,
                windows,
                {provider.name: provider for provider in speech},
                publisher,
            )
        ),
        stream_fanout.definition(stream_fanout.FanoutPorts(records.summaries, publisher)),
        summary_definition(SummaryPorts(records.summaries, records.sessions, records.transcripts, writer, publisher)),
    ]
