"""`/metrics`: what the site and a worker tell, and that they tell it to nobody else."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.metrics import serve_worker_metrics, worker_families
from app.ports import free_port
from app.settings import Settings, SettingsError, load
from app.wiring import PERMITS
from kernel import workflow_id_of
from kernel.errors import StoreUnavailable
from kernel.worker import Worker
from tests.kernel_kit import Kit, open_kit
from tests.web_kit import open_web_kit

TOKEN = {"authorization": "Bearer figures"}
PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.fixture
async def web(server_urls, db, prefix):
    async with open_web_kit(server_urls, db, prefix, metrics="token", metrics_token="figures") as kit:
        yield kit


@pytest.fixture
async def kit(db, redis, prefix, clock):
    """A workflow that ran to its end and was observed, and a worker that beats."""
    kit = await open_kit(db, redis, prefix, clock)
    await kit.start("linear")
    await kit.run("linear")
    await kit.projections.beat("w1", slots=8, busy=1, dropped=0, depth=2)
    return kit


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Value by name and the values of the labels, which come in the order of their names."""
    families = text_string_to_metric_families(text)
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


async def read(client: httpx.AsyncClient) -> dict[tuple[str, ...], float]:
    answer = await client.get("/metrics", headers=TOKEN)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples(answer.text)


async def test_the_site_tells_what_the_overview_shows_and_what_it_answered(web, kit) -> None:
    async with web.client() as client:
        await client.get("/api/summaries/none-of-mine")
        await client.get("/nowhere")
        found = await read(client)
    assert found["baton_part_up", "mongo"] == found["baton_part_up", "redis"] == 1
    assert found["baton_part_up", "asr"] == 0
    assert {labels[1] for labels in found if labels[0] == "baton_lane_depth"} == {"0", "1", "2", "3"}
    assert found["baton_permits_limit", "speech_recognition"] == PERMITS["speech_recognition"].max_concurrency
    assert (found["baton_workers", "beating"], found["baton_workers", "silent"]) == (1, 0)
    assert (found["baton_slots",], found["baton_slots_busy",], found["baton_observer_queue",]) == (8, 1, 2)
    assert found["baton_workflows", "completed", "linear"] == 1
    assert found["baton_asr_tasks", "queued"] == 0
    assert found["baton_http_requests_total", "GET", "/api/summaries/{summary_id}", "404"] == 1
    assert found["baton_http_requests_total", "GET", "none", "404"] == 1
    assert not any("none-of-mine" in label for labels in found for label in labels), "no address is told"


async def until_nobody_reads(client: httpx.AsyncClient) -> None:
    while True:
        if (await read(client))["baton_sse_readers",] == 0:
            return


async def test_open_event_streams_are_counted(web) -> None:
    record = await web.subscribe()
    async with web.client() as client:
        async with client.stream("GET", f"/api/summaries/{record['id']}/events") as answer:
            chunks = answer.aiter_bytes()
            await anext(chunks)
            assert (await read(client))["baton_sse_readers",] == 1
        await until_nobody_reads(client)


async def test_with_the_database_away_the_site_says_so_and_nothing_it_cannot_know(web, monkeypatch) -> None:
    async def away() -> list:
        raise StoreUnavailable("away")

    monkeypatch.setattr(web.parts.projections, "workers", away)
    async with web.client() as client:
        found = await read(client)
    assert ("baton_part_up", "redis") in found
    assert not {"baton_workers", "baton_lane_depth"} & {labels[0] for labels in found}


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer guess"}, {"authorization": "Basic figures"}, {"authorization": ""}]
)
async def test_without_the_token_nothing_is_told(web, headers) -> None:
    async with web.client(None) as client:
        answer = await client.get("/metrics", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")
    assert "baton_" not in answer.text


async def test_a_signed_in_person_is_a_stranger_too(web) -> None:
    async with web.client("operator") as client:
        assert (await client.get("/metrics")).status_code == 401


async def test_unless_asked_for_there_are_no_metrics(server_urls, db, prefix) -> None:
    async with open_web_kit(server_urls, db, prefix) as web, web.client("operator") as client:
        assert (await client.get("/metrics")).status_code == 404


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "via", "x-real-ip", "x-forwarded-host"])
async def test_on_loopback_whoever_comes_through_a_proxy_is_a_stranger(server_urls, db, prefix, header) -> None:
    async with open_web_kit(server_urls, db, prefix, metrics="loopback") as web, web.client(None) as client:
        assert (await client.get("/metrics")).status_code == 200
        assert (await client.get("/metrics", headers={header: "127.0.0.1"})).status_code == 404


async def worked_off(kit: Kit) -> Worker:
    """A worker that has carried a workflow through a failed call, and gone home."""
    worker = Worker("w1", kit.parts, kit.definitions, kit.projections, kit.mutex, slots=3)
    await kit.start("retry")
    working = asyncio.create_task(worker.run())
    await kit.eventually(workflow_id_of("retry:a"), lambda found: found.status == "completed")
    worker.stop()
    await working
    return worker


async def listening(client: httpx.AsyncClient, serving: "asyncio.Task[None]") -> httpx.Response:
    """The first answer of a server that is starting."""
    while not serving.done():
        try:
            return await client.get("/metrics")
        except httpx.ConnectError:
            await asyncio.sleep(0.02)
    raise AssertionError("the server ended before it listened")


async def test_a_worker_tells_on_its_own_port_how_its_calls_ended(kit) -> None:
    worker, port, stopping = await worked_off(kit), free_port(), asyncio.Event()
    settings = Settings(metrics="token", metrics_token="figures", metrics_port=port)
    serving = asyncio.create_task(serve_worker_metrics(settings, worker, stopping))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        refused = await listening(client, serving)
        found = await read(client)
    stopping.set()
    await serving
    assert (found["baton_worker_slots",], found["baton_worker_slots_busy",]) == (3, 0)
    assert found["baton_step_calls_total", "failed", "one", "retry"] == 2
    assert found["baton_step_calls_total", "completed", "one", "retry"] == 1
    assert ("baton_step_seconds_total", "two", "retry") in found
    assert ("process_resident_memory_bytes",) in found
    assert (refused.status_code, "baton_" in refused.text) == (401, False)


async def test_the_table_of_the_operations_page_names_every_metric_and_no_other(web, kit) -> None:
    worker = Worker("w1", kit.parts, kit.definitions, kit.projections, kit.mutex)
    async with web.client() as client:
        text = (await client.get("/metrics", headers=TOKEN)).text
    told = set(re.findall(r"^# TYPE (baton_\w+)", text, re.MULTILINE))
    told |= {family.name + ("_total" if family.type == "counter" else "") for family in worker_families(worker)}
    assert set(re.findall(r"^\| `(baton_\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == told


def test_a_token_that_is_wanted_must_be_set() -> None:
    with pytest.raises(SettingsError, match="BATON_METRICS_TOKEN"):
        load({"BATON_METRICS": "token"})
    assert load({"BATON_METRICS": "loopback"}).metrics == "loopback"
