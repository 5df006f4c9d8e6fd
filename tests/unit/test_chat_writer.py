"""The writer client through the real SDK: what is sent, and what each refusal is taken for."""

import httpx2
import msgspec
import pytest

from activities.adapters.writer import ChatWriter, read_price
from activities.payloads import SpeechSegment, Usage, WriteRequest
from activities.ports import TooLong, WriterFault, WriterRefused

URL = "http://writer.test/v1"
REQUEST = WriteRequest("Night Talk", "brief", "auto", [SpeechSegment(1.0, 2.0, "Good evening.")])


@pytest.fixture
async def writer():
    opened = ChatWriter(URL, "secret-key", "small-model")
    yield opened
    await opened.aclose()


@pytest.fixture
def route(httpx2_mock):
    return httpx2_mock.post(f"{URL}/chat/completions")


def stream(*chunks: object) -> bytes:
    return b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def said(text: str | None, finish: str | None = None) -> dict:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


async def written(writer: ChatWriter) -> list[str | Usage]:
    return [item async for item in writer.write(REQUEST)]


async def test_the_request_is_streaming_asks_for_usage_and_carries_the_transcript_as_data(writer, route) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 2}}
    route.respond(200, content=stream(said("Good"), said(" evening."), said(None, "stop"), usage))
    assert await written(writer) == ["Good", " evening.", Usage(40, 2)]
    sent = msgspec.json.decode(route.calls.last.request.content)
    assert (sent["model"], sent["stream"], sent["stream_options"]) == ("small-model", True, {"include_usage": True})
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert "[00:00:01] Good evening." in sent["messages"][1]["content"]
    assert route.calls.last.request.headers["authorization"] == "Bearer secret-key"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
async def test_what_may_pass_is_a_fault_sent_once_with_the_providers_word_on_when(writer, route, status) -> None:
    route.respond(status, content=b"<html>Bad gateway</html>", headers={"Retry-After": "12"})
    with pytest.raises(WriterFault, match=str(status)) as caught:
        await written(writer)
    assert caught.value.retry_after_s == 12.0
    assert route.call_count == 1


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, {"error": {"message": "unknown parameter"}}, "unknown parameter"),
        (401, {"error": {"message": "Incorrect API key provided: secret-key"}}, "does not accept the key"),
        (403, {}, "does not accept the key"),
        (404, {"error": {"message": "no such model"}}, "unknown"),
        (422, {"error": "odd"}, "422"),
    ],
)
async def test_what_will_never_pass_is_refused_without_showing_the_key(writer, route, status, body, words) -> None:
    route.respond(status, json=body)
    with pytest.raises(WriterRefused, match=words) as caught:
        await written(writer)
    assert "secret-key" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (413, "Request Entity Too Large"),
        (422, "Input validation error: inputs tokens + max_new_tokens must be <= 4096; too many tokens"),
    ],
)
async def test_a_request_that_does_not_fit_is_told_apart(writer, route, status, message) -> None:
    route.respond(status, json={"error": {"message": message}})
    with pytest.raises(TooLong):
        await written(writer)


async def test_what_does_not_fit_may_be_said_in_a_stream_too(writer, route) -> None:
    route.respond(200, content=stream({"error": {"message": "context length exceeded"}}))
    with pytest.raises(TooLong):
        await written(writer)


async def test_the_price_of_an_answer_is_told_where_it_is_known(route) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 400_000, "completion_tokens": 50_000}}
    route.respond(200, content=stream(said("Good", "stop"), usage))
    priced = ChatWriter(URL, "k", "m", price=read_price("0.5/2"))
    assert (await written(priced))[-1] == Usage(400_000, 50_000, 0.3)
    await priced.aclose()


async def test_a_fault_names_the_address_without_its_secrets(httpx2_mock) -> None:
    writer = ChatWriter("http://li:word@writer.test/v1?key=secret", "k", "m")
    httpx2_mock.post().mock(side_effect=httpx2.ConnectError("refused"))
    with pytest.raises(WriterFault, match=r"the model at http://writer\.test/v1 failed"):
        await written(writer)
    await writer.aclose()


@pytest.mark.parametrize("error", [httpx2.ConnectError("refused"), httpx2.ReadTimeout("slow"), httpx2.ReadError("")])
async def test_a_server_out_of_reach_is_a_fault(writer, route, error) -> None:
    route.mock(side_effect=error)
    with pytest.raises(WriterFault):
        await written(writer)


@pytest.mark.parametrize(
    ("chunks", "kind", "words"),
    [
        ([said("Half"), said(None, "length")], WriterFault, "cut off"),
        ([said("Half")], WriterFault, "broke off"),
        ([said(None, "stop")], WriterFault, "empty"),
        ([said(" \n "), said("", "stop")], WriterFault, "empty"),
        ([said("<think>only thoughts</think>", "stop")], WriterFault, "empty"),
        ([said("Text <think>and then", "stop")], WriterFault, "middle of its thoughts"),
        ([{"choices": [{"delta": {"reasoning_content": "hm"}, "finish_reason": "stop"}]}], WriterFault, "empty"),
        ([said("A", None), {"error": {"message": "overloaded", "code": 529}}], WriterFault, "overloaded"),
        ([said("A"), {"error": "plain words"}], WriterFault, "plain words"),
        ([said("A", "content_filter")], WriterRefused, "content filter"),
        ([{"choices": [{"delta": {"refusal": "I will not."}, "finish_reason": "stop"}]}], WriterRefused, "I will not"),
        (
            [said("<transcript>\n[00:00:01] Good evening."), said(None, "stop")],
            WriterFault,
            "repeated what it was given",
        ),
        ([said("Style: brief\nLanguage: auto\n"), said(None, "stop")], WriterFault, "repeated what it was given"),
        (["text", 5], WriterFault, "no chat answer"),
        ([{"choices": "none"}], WriterFault, "no chat answer"),
    ],
)
async def test_an_answer_that_is_no_whole_summary_has_a_name(writer, route, chunks, kind, words) -> None:
    route.respond(200, content=stream(*chunks))
    with pytest.raises(kind, match=words):
        await written(writer)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an empty answer"),
        (b"data: [DONE]\n\n", "an empty answer"),
        (b"\n<!doctype html><html>Welcome</html>", "a web page"),
        (b'{"error": {"message": "no slot is free"}}', "no slot is free"),
    ],
)
async def test_an_answer_without_any_event_is_named_for_what_it_is(writer, route, content, words) -> None:
    route.respond(200, content=content)
    with pytest.raises(WriterFault, match=words):
        await written(writer)


async def test_chunks_without_choices_are_ignored_wherever_they_come(writer, route) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 2}}
    early, late = {"choices": []}, {"choices": [], "usage": None}
    route.respond(200, content=stream(early, said("Good"), usage, said(" evening.", "stop"), late))
    assert await written(writer) == ["Good", " evening.", Usage(40, 2)]


async def test_thoughts_and_blanks_before_the_text_do_not_reach_the_summary(writer, route) -> None:
    chunks = [said(text) for text in ["<th", "ink>pl", "an</thi", "nk>\n\n", " Good", " <", "3 evening"]]
    route.respond(200, content=stream({"choices": None}, *chunks, said(None, "stop")))
    assert await written(writer) == ["Good", " ", "<3 evening", Usage()]


async def test_content_in_parts_counts_as_far_as_it_is_text(writer, route) -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Good"}]
    route.respond(200, content=stream({"choices": [{"delta": {"content": parts}}]}, said(None, "stop")))
    assert await written(writer) == ["Good", Usage()]
