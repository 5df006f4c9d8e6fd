"""Every refusal is a JSON problem with a listed code, and leaves nothing behind."""

import httpx
import pytest
from pymongo.errors import AutoReconnect

from app.web.errors import problem_of
from app.web.problems import CODES
from tests.web_kit import STREAM, open_web_kit


@pytest.fixture
async def web(server_urls, db, redis, prefix):
    async with open_web_kit(server_urls, db, prefix) as kit:
        yield kit


def problem(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    assert set(body) == {"status_code", "detail", "code"}
    assert body["status_code"] == answer.status_code == CODES[body["code"]][0]
    assert body["detail"]
    return answer.status_code, body["code"]


async def test_without_a_valid_token_nothing_is_told(web):
    async with web.client(None) as nobody, web.client(None, authorization="Bearer wrong") as stranger:
        for client in (nobody, stranger):
            for path in (
                "/api/summaries",
                "/api/summaries/x",
                "/api/summaries/x/events",
                "/api/events",
                "/api/ops/overview",
            ):
                answer = await client.get(path)
                assert problem(answer) == (401, "not_signed_in"), path
                assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_wrong_token_is_refused_before_the_body_is_looked_at(web):
    async with web.client(None, authorization="Bearer wrong") as stranger:
        assert problem(await stranger.post("/api/summaries", content=b"{")) == (401, "not_signed_in")


async def test_what_is_somebody_elses_does_not_exist(web):
    record = await web.subscribe("li")
    here = f"/api/summaries/{record['id']}"
    async with web.client("mei") as mei:
        for method, path in [
            ("GET", here),
            ("GET", f"{here}/transcript"),
            ("GET", f"{here}/audio"),
            ("GET", f"{here}/events"),
            ("GET", f"{here}/export.md"),
            ("POST", f"{here}/retry"),
            ("DELETE", here),
        ]:
            assert problem(await mei.request(method, path)) == (404, "not_found"), path
        assert (await mei.get("/api/summaries")).json() == []
    async with web.client("li") as li:
        assert (await li.get(here)).status_code == 200
        unknown = await li.get("/api/summaries/sum_unknown")
        assert problem(unknown) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"url": "not an address"}, "bad_address"),
        ({"url": "ftp://example.org/a.m3u8"}, "bad_address"),
        ({"url": "http://127.0.0.1:27017/"}, "bad_address"),
        ({"url": "http://169.254.169.254/latest/meta-data"}, "bad_address"),
        ({"url": ""}, "bad_address"),
        ({"url": STREAM, "style": "haiku"}, "invalid_request"),
        ({"url": STREAM, "language": 5}, "invalid_request"),
        ({"url": STREAM, "colour": "red"}, "invalid_request"),
        ({"url": "http://example.org/" + "a" * 3000}, "invalid_request"),
        ({}, "invalid_request"),
        ([], "invalid_request"),
    ],
)
async def test_a_request_that_is_not_accepted_leaves_nothing_behind(web, db, body, code):
    async with web.client() as li:
        assert problem(await li.post("/api/summaries", json=body)) == (422, code)
    for name in ("summaries", "streams", "sessions", "request_keys", "workflow_instances"):
        assert await db[name].count_documents({}) == 0, name


async def test_what_is_no_json_is_malformed(web):
    async with web.client() as li:
        answer = await li.post("/api/summaries", content=b'{"url": ', headers={"content-type": "application/json"})
        assert problem(answer) == (400, "malformed_request")


async def test_a_body_of_a_megabyte_is_refused_and_leaves_nothing_behind(web, db):
    async def pieces():
        for _ in range(1024):
            yield b"x" * 1024

    async with web.client() as li:
        said = await li.post("/api/summaries", json={"url": "http://example.org/" + "x" * 1_000_000})
        assert problem(said) == (413, "too_large")
        unsaid = await li.post("/api/summaries", content=pieces(), headers={"content-type": "application/json"})
        assert problem(unsaid) == (413, "too_large")
        assert (await li.get("/api/summaries")).json() == []
    assert await db["streams"].count_documents({}) == 0


@pytest.mark.parametrize("query", ["limit=0", "limit=1000", "limit=many"])
async def test_a_parameter_out_of_bounds_is_named(web, query):
    async with web.client() as li:
        answer = await li.get(f"/api/summaries?{query}")
    assert problem(answer) == (422, "invalid_request")
    assert "limit" in answer.json()["detail"]


async def test_a_key_that_comes_with_another_body_conflicts(web):
    async with web.client(**{"idempotency-key": "k1"}) as li:
        first = await li.post("/api/summaries", json={"url": STREAM})
        again = await li.post("/api/summaries", json={"url": STREAM})
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json()["id"] == again.json()["id"]
        other = await li.post("/api/summaries", json={"url": STREAM, "style": "minutes"})
        assert problem(other) == (409, "key_reused")


async def test_unknown_addresses_and_methods_are_json_for_programs(web):
    async with web.client() as li:
        assert problem(await li.get("/api/nothing", headers={"accept": "text/html"})) == (404, "not_found")
        assert problem(await li.put("/api/summaries")) == (405, "method_not_allowed")


async def test_a_subscriber_may_not_do_what_operators_do(web):
    async with web.client("li") as li:
        assert problem(await li.get("/api/ops/overview")) == (403, "operators_only")
        limits = {"max_concurrency": 1, "max_starts_per_second": 1}
        assert problem(await li.put("/api/ops/permits/speech_recognition", json=limits)) == (403, "operators_only")


async def test_a_database_that_is_away_is_a_503_that_says_when_to_come_back(web):
    async def away(*_, **__):
        from kernel.writes import wrapped

        async with wrapped():
            raise AutoReconnect("connection refused")

    object.__setattr__(web.parts.accounts, "by_token", away)
    async with web.client() as li:
        answer = await li.get("/api/summaries")
    assert problem(answer) == (503, "store_unavailable")
    assert answer.headers["retry-after"] == "2"
    assert "refused" not in answer.text


def test_an_unforeseen_error_is_logged_under_a_number_and_tells_nothing(caplog):
    found = problem_of(RuntimeError("a secret: hunter2"))
    assert found.code == "internal_error"
    assert "hunter2" not in found.detail
    number = found.detail.split(" as ")[1].split(".")[0]
    assert number in caplog.text
    assert "hunter2" in caplog.text
