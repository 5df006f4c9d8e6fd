"""A speech provider that answers in one call: what is sent, what counts as speech, and that nothing is paid twice."""

import threading
from collections.abc import Iterator
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from faster_whisper import WhisperModel

from activities.adapters.decoding import RATE, SampleDecoder
from activities.adapters.opus import OpusTrack
from activities.adapters.speech_results import SpeechResults
from activities.adapters.transcription import TranscriptionEndpoint
from activities.payloads import SpeechSegment
from activities.ports import SpeechFault, SpeechRefused
from app.models import model_folder
from app.settings import Settings
from kernel import Clock
from kernel.testing import Crash, crash_at

URL = "http://speech.test/v1"
HEARD = {
    "text": " Good evening. So.",
    "language": "english",
    "duration": 4.0,
    "segments": [
        {"id": 1, "start": 2.0, "end": 9.0, "text": " So.", "no_speech_prob": 0.1, "avg_logprob": -0.3},
        {"id": 0, "start": 0.0, "end": 2.0, "text": " Good evening.", "no_speech_prob": 0.7, "avg_logprob": -0.3},
        {"id": 2, "start": 3.0, "end": 4.0, "text": " Thank you.", "no_speech_prob": 0.9, "avg_logprob": -1.4},
    ],
}


def opus(samples: Any) -> bytes:
    file = BytesIO()
    track = OpusTrack(file)
    track.append(samples)
    track.close()
    return file.getvalue()


AUDIO = opus(np.zeros(4 * RATE, np.int16))


@pytest.fixture
def results(db: Any, clock: Clock) -> SpeechResults:
    return SpeechResults(db, clock)


@pytest.fixture
async def endpoint(results: SpeechResults):
    opened = TranscriptionEndpoint(URL, "secret-key", "whisper-1", results)
    yield opened
    await opened.aclose()


@pytest.fixture
def route(httpx2_mock):
    return httpx2_mock.post(f"{URL}/audio/transcriptions")


def form_of(request: Any) -> dict[str, bytes]:
    """The fields of a multipart request."""
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    parts: Any = message_from_bytes(head + request.content).get_payload()
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts}


async def test_a_window_is_sent_with_its_model_and_comes_back_with_times(endpoint, route) -> None:
    route.respond(200, json=HEARD)
    task = await endpoint.submit("tra:1:0", AUDIO, language="en")
    status = await endpoint.poll(task)
    assert (status.state, status.language, status.decoded_s) == ("completed", "en", 4.0)
    assert status.segments == [
        SpeechSegment(0.0, 2.0, "Good evening."),
        SpeechSegment(2.0, pytest.approx(4.0, abs=0.05), "So."),
    ]
    form = form_of(route.calls.last.request)
    assert (form["model"], form["response_format"], form["language"]) == (b"whisper-1", b"verbose_json", b"en")
    assert form["file"].startswith(b"OggS")
    assert route.calls.last.request.headers["authorization"] == "Bearer secret-key"


async def test_the_same_key_is_heard_once_whoever_asks(endpoint, route, results) -> None:
    route.respond(200, json=HEARD)
    await endpoint.submit("tra:1:0", AUDIO, language=None)
    other = TranscriptionEndpoint(URL, "secret-key", "whisper-1", results)
    assert await other.poll(await other.submit("tra:1:0", AUDIO, language=None)) == await endpoint.poll("tra:1:0")
    await other.aclose()
    assert route.call_count == 1
    assert "language" not in form_of(route.calls.last.request)


@pytest.mark.parametrize(("point", "calls"), [("SpeechResults.store:before", 2), ("SpeechResults.store:after", 1)])
async def test_only_a_death_before_the_result_is_stored_asks_again(endpoint, route, point, calls) -> None:
    route.respond(200, json=HEARD)
    with crash_at(point) as death, pytest.raises(Crash):
        await endpoint.submit("tra:1:0", AUDIO, language="en")
    assert death.happened
    status = await endpoint.poll(await endpoint.submit("tra:1:0", AUDIO, language="en"))
    assert [segment.text for segment in status.segments] == ["Good evening.", "So."]
    assert route.call_count == calls


async def test_a_model_without_times_is_asked_for_text_alone(endpoint, route) -> None:
    refusal = {"error": {"message": "response_format 'verbose_json' is not compatible with model"}}
    answers = [(400, refusal), (200, {"text": " Good evening. So. "}), (200, {"text": ""})]
    route.side_effect = [httpx.Response(status, json=body) for status, body in answers]
    status = await endpoint.poll(await endpoint.submit("tra:1:0", AUDIO, language=None))
    assert status.segments == [SpeechSegment(0.0, pytest.approx(4.0, abs=0.05), "Good evening. So.")]
    assert (status.language, status.decoded_s) == (None, pytest.approx(4.0, abs=0.05))
    silent = await endpoint.poll(await endpoint.submit("tra:1:1", AUDIO, language=None))
    assert (silent.segments, route.call_count) == ([], 3)


async def test_a_result_that_is_gone_may_be_asked_for_again(endpoint) -> None:
    status = await endpoint.poll("tra:1:9")
    assert (status.state, status.retryable) == ("failed", True)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_what_may_pass_is_a_fault_with_the_servers_word_on_when(endpoint, route, status) -> None:
    route.respond(status, headers={"Retry-After": "12"}, content=b"<html>")
    with pytest.raises(SpeechFault, match=str(status)) as caught:
        await endpoint.submit("k", AUDIO, language=None)
    assert caught.value.retry_after_s == 12.0


@pytest.mark.parametrize("body", [b"<html>", b'{"segments": []}', b'{"text": "x", "duration": "long"}'])
async def test_an_answer_that_is_no_transcript_is_a_fault_and_never_an_empty_success(endpoint, route, body) -> None:
    route.respond(200, content=body)
    with pytest.raises(SpeechFault, match="no transcript"):
        await endpoint.submit("k", AUDIO, language=None)


@pytest.mark.parametrize(
    ("status", "words"), [(400, "bad audio"), (401, "the key"), (404, "unknown"), (413, "413"), (422, "bad audio")]
)
async def test_what_will_never_pass_is_refused_without_showing_the_key(endpoint, route, status, words) -> None:
    route.respond(status, json={"error": {"message": "bad audio"}})
    with pytest.raises(SpeechRefused, match=words) as caught:
        await endpoint.submit("k", AUDIO, language=None)
    assert "secret-key" not in str(caught.value)


# ---- a real model behind the same API ----


class Listening(BaseHTTPRequestHandler):
    """`/audio/transcriptions` over faster-whisper itself."""

    model: WhisperModel

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        parts: Any = message_from_bytes(f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode() + body)
        fields = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in parts.get_payload()
        }
        segments, info = self.model.transcribe(BytesIO(fields["file"]), beam_size=1)
        answer = {
            "text": "",
            "language": info.language,
            "duration": info.duration,
            "segments": [{"start": one.start, "end": one.end, "text": one.text} for one in segments],
        }
        said = msgspec.json.encode(answer)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def real() -> Iterator[str]:
    Listening.model = WhisperModel(model_folder(Settings()), "cpu", compute_type="int8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listening)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


async def test_a_real_model_behind_the_endpoint_hears_what_was_said(real: str, results: SpeechResults) -> None:
    talk = np.concatenate([*SampleDecoder().decode(Path("fixtures/audio/night-talk.aac").read_bytes(), 90.0)])
    endpoint = TranscriptionEndpoint(real, "none", "base", results)
    status = await endpoint.poll(await endpoint.submit("tra:1:0", opus(talk[: 20 * RATE]), language=None))
    await endpoint.aclose()
    assert (status.language, round(status.decoded_s)) == ("en", 20)
    assert "architecture" in " ".join(segment.text for segment in status.segments).lower()
    assert all(0 <= one.start <= one.end <= 20.1 for one in status.segments)
