"""A three-hour talk on a model that reads little: by sections, each paid for once, through the real client and HTTP."""

import re
from itertools import cycle
from typing import Any

import msgspec
import pytest

from activities.adapters.budget import Budget, most_tokens
from activities.adapters.writer import ChatWriter
from activities.payloads import SpeechSegment
from activities.summary.compose import Written, compose
from activities.summary.record import SummaryPorts
from app.writer.chat import read_request, tokens
from app.writer.extract import summarise
from app.writer.reading import read_task
from kernel import Yield
from tests.servers import Reply, Request, ScriptedServer
from tests.unit.story import SUMMARY_INPUT, Publisher, Sessions, Stage, Summaries, Transcripts
from tests.unit.test_extract import SCRIPTS, lines_of

HOURS = 3
READS = 8_000
"""Tokens, as the server counts them."""


def three_hours() -> list[SpeechSegment]:
    """A sentence every five seconds, none quite like another."""
    sentences = cycle([said for script in SCRIPTS for said in lines_of(script.read_text(encoding="utf-8"))])
    count = HOURS * 3600 // 5
    return [SpeechSegment(at * 5.0, at * 5.0 + 4.5, f"{next(sentences)[:-1]}, point {at}.") for at in range(count)]


TALK = three_hours()


class Model:
    """A model of few tokens: refuses what is longer as OpenAI's servers do, and else writes by picking sentences."""

    def __init__(self) -> None:
        self.refused = 0
        self.answered: list[str] = []

    def __call__(self, request: Request) -> Reply:
        asked = read_request(request.body)
        prompt = "\n".join(message.text for message in asked.messages)
        if tokens(prompt) > READS:
            self.refused += 1
            told = f"This model's maximum context length is {READS} tokens. However, you requested {tokens(prompt)}."
            return Reply(
                msgspec.json.encode({"error": {"message": told, "code": "context_length_exceeded"}}), status=400
            )
        self.answered.append(prompt)
        text = summarise(read_task(asked.messages))
        usage = {"prompt_tokens": tokens(prompt), "completion_tokens": tokens(text)}
        chunks = [
            {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]},
            {"choices": [], "usage": usage},
        ]
        body = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks)
        return Reply(body + b"data: [DONE]\n\n", headers={"Content-Type": "text/event-stream"})


async def written_of(talk: list[SpeechSegment], model: Model, context: int, style: Any) -> Summaries:
    """The summary's record once it is written. Every call is made by another worker, which knows what is stored."""
    summaries = Summaries(style=style)
    transcripts = Transcripts(state="completed", segments=talk, language="en")
    sessions = Sessions(state="ready", duration_s=talk[-1].end)
    stage = Stage(SUMMARY_INPUT, outputs={"transcribe": {"transcript_id": "tra_1"}})
    async with ScriptedServer() as server:
        server.on("/v1/chat/completions", model)
        for _ in range(200):
            budget = Budget(context, most_tokens)
            writer = ChatWriter(f"{server.url}/v1", "none", "baton-extractive", budget=budget)
            ports = SummaryPorts(summaries, sessions, transcripts, writer, Publisher())
            outcome = stage.take(await compose(ports, stage.context()))
            await writer.aclose()
            if isinstance(outcome, Written):
                return summaries
            assert isinstance(outcome, Yield)
    raise AssertionError("the summary is never written")


@pytest.mark.parametrize("style", ["brief", "chapters"])
@pytest.mark.parametrize(
    "context", [pytest.param(READS, id="its context is known"), pytest.param(128_000, id="it is thought to read more")]
)
async def test_a_talk_of_three_hours_is_written_by_a_model_that_reads_eight_thousand_tokens(
    context: int, style: str
) -> None:
    model = Model()
    summaries = await written_of(TALK, model, context, style)
    summary, notes = summaries.summary, list(summaries.sections.values())
    assert (model.refused == 0) == (context == READS)
    assert len(model.answered) == len(set(model.answered)), "no section is asked for twice"
    assert len(model.answered) == len([one for one in notes if not one.too_long]) + 1
    assert summary.usage.prompt_tokens == sum(tokens(prompt) for prompt in model.answered)
    asked_of = {line for prompt in model.answered for line in re.findall(r", point (\d+)\.", prompt)}
    assert asked_of == {str(at) for at in range(len(TALK))}, "every line was read"
    if style == "chapters":
        assert {chapter.start for chapter in summary.chapters} <= {one.start for one in TALK}


async def test_the_sections_cover_each_minute_in_which_something_was_said() -> None:
    silent = range(60, 75)  # minutes of music
    talk = [one for one in TALK if int(one.start // 60) not in silent]
    summaries = await written_of(talk, Model(), READS, "brief")
    first_level = [one for one in summaries.sections.values() if not one.too_long]
    for minute in set(range(HOURS * 60)) - set(silent):
        assert any(one.start_s < minute * 60 + 60 and one.end_s > minute * 60 for one in first_level), minute
