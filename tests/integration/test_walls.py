"""Every route there is, walked by whoever has no business there; a new one must say whose it is."""

import httpx
import pytest
from litestar.handlers import HTTPRouteHandler

from app.web.application import create_app
from tests.web_kit import PEOPLE, open_web_kit

FOR_ALL = ("/healthz", "/metrics", "/hooks/", "/sign-in", "/sign-out", "/language/", "/static/", "/schema")
FOR_OPERATORS = ("/api/ops/", "/operators")
FOR_ONESELF = {"/", "/api/summaries", "/api/uploads", "/api/events"}
"""What shows and takes only the asker's own."""
BODIES = {"reason": "curious", "max_concurrency": "1", "max_starts_per_second": "1"}
HERE = {"sec-fetch-site": "same-origin"}


@pytest.fixture
async def web(server_urls, db, redis, prefix):
    async with open_web_kit(server_urls, db, prefix) as kit:
        yield kit


def routes(web) -> list[tuple[str, str]]:
    """(method, path with its parameters' names) of everything that is not for all."""
    handlers = [
        (handler, route.path_format)
        for route in create_app(web.parts).routes
        for handler in getattr(route, "route_handlers", ())
        if isinstance(handler, HTTPRouteHandler) and not route.path_format.startswith(FOR_ALL)
    ]
    return [(method, path) for handler, path in handlers for method in sorted({*handler.http_methods} - {"OPTIONS"})]


def filled(path: str, summary_id: str) -> str:
    known = {"summary_id": summary_id, "workflow_id": "wf_1", "resource": "speech_recognition", "stream_id": "str_1"}
    return path.format_map(known | {"act": "repair"})


async def refusal(client: httpx.AsyncClient, method: str, path: str) -> int:
    """How it is answered, asked with a body of the form that fits."""
    form = {"json": BODIES} if path.startswith("/api/") else {"data": BODIES}
    answer = await client.request(method, path, **({} if method in ("GET", "HEAD") else form))
    return answer.status_code


async def test_every_route_says_whose_it_is_and_none_answers_a_stranger(web):
    found = routes(web)
    unknown = {path for _, path in found if not path.startswith(FOR_OPERATORS) and "{summary_id}" not in path}
    assert unknown == FOR_ONESELF
    async with web.client(None) as nobody:
        answers = {(method, path): await refusal(nobody, method, filled(path, "sum_1")) for method, path in found}
    assert set(answers.values()) == {401}, answers


async def test_nothing_of_a_summary_exists_for_anybody_but_its_owner(web):
    record = await web.subscribe("li")
    await web.record_session(record)
    await web.transcribe(record, "Good evening.")
    await web.complete(record, "## Leases\n")
    theirs = [(method, path) for method, path in routes(web) if "{summary_id}" in path]
    assert len(theirs) > 10
    for name in ("mei", "operator"):
        async with web.client(name) as other:
            answers = {
                (method, path): await refusal(other, method, filled(path, record["id"])) for method, path in theirs
            }
        assert set(answers.values()) == {404}, answers
    async with web.client("li") as li:
        assert (await li.get(f"/api/summaries/{record['id']}")).json()["state"] == "completed"


async def test_every_route_of_operators_refuses_a_subscriber(web):
    before = await web.parts.permit_limits.of("speech_recognition")
    found = [(method, path) for method, path in routes(web) if path.startswith(FOR_OPERATORS)]
    async with web.client("li") as li:
        answers = {(method, path): await refusal(li, method, filled(path, "")) for method, path in found}
    assert set(answers.values()) == {403}, answers
    assert await web.parts.permit_limits.of("speech_recognition") == before


async def sign_in(client: httpx.AsyncClient, name: str, password: str) -> httpx.Response:
    return await client.post("/sign-in", data={"name": name, "password": password})


async def test_a_name_is_tried_ten_times_and_then_waits_even_with_the_right_password(web):
    async with httpx.AsyncClient(base_url=web.url, headers=HERE) as client:
        tries = [(await sign_in(client, "li", f"guess {number}")).status_code for number in range(10)]
        assert tries == [401] * 10
        waiting = await sign_in(client, "li", PEOPLE["li"][0])
        assert waiting.status_code == 429
        assert 0 < int(waiting.headers["retry-after"]) <= 300
        assert "Wait" in waiting.text
        assert "set-cookie" not in waiting.headers
        assert (await sign_in(client, "mei", PEOPLE["mei"][0])).status_code == 303


async def test_a_good_password_begins_the_count_anew(web):
    async with httpx.AsyncClient(base_url=web.url, headers=HERE) as client:
        for _ in range(2):
            for number in range(9):
                await sign_in(client, "li", f"guess {number}")
            assert (await sign_in(client, "li", PEOPLE["li"][0])).status_code == 303
