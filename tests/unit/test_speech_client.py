"""The speech client: what it sends, and what each answer of the service is taken for."""

import httpx
import pytest
import respx

from activities.adapters.speech import AsrClient
from activities.payloads import SpeechSegment
from activities.ports import SpeechFault, SpeechRefused

URL = "http://asr.test:9000"
TASK = {"task_id": "t1", "state": "queued", "progress": 0.0, "duration_s": 61.5, "created_at": "2026-12-01T00:00:00Z"}


@pytest.fixture
async def client():
    opened = AsrClient(URL)
    yield opened
    await opened.aclose()


@pytest.fixture
def service():
    with respx.mock(base_url=URL) as router:
        yield router


@pytest.mark.parametrize("status", [201, 200])
async def test_audio_is_submitted_under_its_key_and_a_known_key_gives_the_known_task(client, service, status) -> None:
    route = service.post("/tasks").respond(status, json=TASK)
    assert await client.submit("transcript:1:0", b"OggS", language="zh") == "t1"
    sent = route.calls.last.request
    assert sent.headers["idempotency-key"] == "transcript:1:0"
    assert sent.url.params["language"] == "zh"
    assert sent.content == b"OggS"


async def test_without_a_language_the_service_decides(client, service) -> None:
    route = service.post("/tasks").respond(201, json=TASK)
    await client.submit("k", b"x", language=None)
    assert route.calls.last.request.url.params["language"] == "auto"


async def test_a_finished_task_comes_with_its_words(client, service) -> None:
    words = [{"start": 0.5, "end": 2.0, "text": "Good evening."}]
    done = {**TASK, "state": "completed", "progress": 100.0, "segments": words, "decoded_s": 61.4, "language": "en"}
    service.get("/tasks/t1").respond(200, json=done)
    status = await client.poll("t1")
    assert (status.state, status.language, status.decoded_s) == ("completed", "en", 61.4)
    assert status.segments == [SpeechSegment(0.5, 2.0, "Good evening.")]


async def test_a_task_that_the_service_lost_has_failed_and_may_be_submitted_again(client, service) -> None:
    service.get("/tasks/t1").respond(404)
    status = await client.poll("t1")
    assert (status.state, status.retryable) == ("failed", True)
    assert status.segments == []


@pytest.mark.parametrize("status", [400, 413, 415, 422])
async def test_audio_that_the_service_will_never_take_is_refused_with_its_words(client, service, status) -> None:
    service.post("/tasks").respond(status, json={"code": "too_large", "detail": "at most 200 MB"})
    with pytest.raises(SpeechRefused, match="too_large: at most 200 MB"):
        await client.submit("k", b"x", language=None)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
async def test_a_service_that_is_not_ready_is_a_fault_with_its_words(client, service, status) -> None:
    answer = {"code": "model_missing", "detail": "The model is not installed."}
    service.post("/tasks").respond(status, json=answer)
    service.get("/tasks/t1").respond(status, json=answer)
    for call in (client.submit("k", b"x", language=None), client.poll("t1")):
        with pytest.raises(SpeechFault, match="model_missing: The model is not installed"):
            await call


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("")]
)
async def test_a_service_out_of_reach_is_a_fault(client, service, error) -> None:
    service.post("/tasks").mock(side_effect=error)
    service.get("/tasks/t1").mock(side_effect=error)
    for call in (client.submit("k", b"x", language=None), client.poll("t1")):
        with pytest.raises(SpeechFault):
            await call


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"task_id": 1}', b'{"task_id": "t1", "state": "lost"}'])
async def test_an_answer_that_is_no_task_is_a_fault_and_never_an_empty_success(client, service, body) -> None:
    service.get("/tasks/t1").respond(200, content=body)
    with pytest.raises(SpeechFault, match="no task"):
        await client.poll("t1")


async def test_an_unexpected_refusal_of_a_poll_is_only_a_fault(client, service) -> None:
    service.get("/tasks/t1").respond(400, content=b"<html>bad gateway</html>")
    with pytest.raises(SpeechFault, match="400, without a reason"):
        await client.poll("t1")
