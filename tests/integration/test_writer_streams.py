"""The writer client against raw bytes on the wire: cuts, keep-alives, and ends that are none."""

import asyncio

import msgspec
import pytest

from activities.adapters.writer import ChatWriter
from activities.payloads import SpeechSegment, Usage, WriteRequest
from activities.ports import WriterFault
from tests.servers import Cut, Reply, ScriptedServer

PATH = "/v1/chat/completions"
REQUEST = WriteRequest("t", "brief", "auto", [SpeechSegment(1.0, 2.0, "Good evening.")])
STREAM = {"Content-Type": "text/event-stream"}


@pytest.fixture
async def server():
    async with ScriptedServer() as running:
        yield running


@pytest.fixture
async def writer(server: ScriptedServer):
    opened = ChatWriter(f"{server.url}/v1", "none", "m")
    yield opened
    await opened.aclose()


def event(text: str | None, finish: str | None = None, end: bytes = b"\n") -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"choices": [choice]}) + end + end


async def collect(writer: ChatWriter, got: list[str | Usage]) -> None:
    async for item in writer.write(REQUEST):
        got.append(item)


async def text_of(writer: ChatWriter) -> str:
    items = [item async for item in writer.write(REQUEST)]
    assert isinstance(items[-1], Usage)
    return "".join(item for item in items if isinstance(item, str))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_one_byte_at_a_time_leaves_the_text_intact(server, writer, end: bytes) -> None:
    whole = event("你好🙂\r\n", end=end) + event("fine", "stop", end) + b"data: [DONE]" + end + end
    server.on(PATH, Reply(headers=STREAM, parts=[whole[at : at + 1] for at in range(len(whole))]))
    assert await text_of(writer) == "你好🙂\r\nfine"


async def test_keep_alives_and_blocks_without_data_are_ignored_everywhere(server, writer) -> None:
    noise = b": ping\n\nretry: 2000\n\nid: 4\n\n\n: ping\n"
    parts = [noise, event("a"), noise, event("b"), noise, event(None, "stop"), noise, b"data: [DONE]\n\n", noise]
    server.on(PATH, Reply(headers=STREAM, parts=parts))
    assert await text_of(writer) == "ab"


@pytest.mark.parametrize("end", [[], [Cut]], ids=["closed", "reset"])
@pytest.mark.parametrize("last", [b"", event("b")[:-9], b"data: "], ids=["between", "inside", "begun"])
async def test_a_connection_that_ends_before_the_model_has_finished_is_a_fault(server, writer, end, last) -> None:
    got: list[str | Usage] = []
    server.on(PATH, Reply(headers=STREAM, parts=[event("a"), last, *end]))
    with pytest.raises(WriterFault):
        await collect(writer, got)
    assert not any(isinstance(item, Usage) for item in got)


async def test_a_connection_that_breaks_after_the_model_has_finished_changes_nothing(server, writer) -> None:
    parts = [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n", event("a", "stop")]
    server.on(PATH, Reply(parts=parts, raw=True))
    assert await text_of(writer) == "a"


async def test_text_arrives_while_the_model_is_still_writing(server, writer) -> None:
    go_on = asyncio.Event()
    server.on(PATH, Reply(headers=STREAM, parts=[event("first"), go_on, event(" second", "stop")]))
    writing = writer.write(REQUEST)
    assert await anext(writing) == "first"
    go_on.set()
    assert [item async for item in writing] == [" second", Usage()]
