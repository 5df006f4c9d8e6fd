"""`compose`: have the summary written, word by word into the client stream, and store exactly what was written.

A text that this round has stored already is never written twice; nothing is written where nobody spoke. A talk that is
too long for the model is read section by section, one section a call, so that none is paid for twice.
"""

from hashlib import sha256

import msgspec

from activities.payloads import Composed, Notes, Summary, Usage, WriteRequest
from activities.ports import TooLong, UselessAnswer, Writer, WriterFault, WriterRefused
from activities.summary.chapters import chapters_of
from activities.summary.condense import Plan, Task, Unsplittable
from activities.summary.notes import noted
from activities.summary.record import SummaryPorts, current, current_paid
from activities.summary.transcribe import Awaited
from activities.times import SpokenTimes, TimeFilter
from kernel import Fatal, Outcome, RetryAfter, StepContext, TextSink, Yield

LONGEST_RETRY_S = 600.0
MOST_ANSWERS = 4
"""Tries after which a model that answers, but with no summary, is not asked again."""
SHORTER = 0.8
"""Notes are at most this part of what they are of; else nothing would ever fit."""
NO_SPEECH = {
    "en": "No speech was found in this recording, so there is nothing to summarise.",
    "zh": "这段录音里没有识别到语音，因此没有可以总结的内容。",
}


class Written(msgspec.Struct, frozen=True):
    """Output of `compose`: which round stored which text."""

    round: int
    characters: int
    digest: str


def written(round: int, text: str) -> Written:
    """The output for a stored text."""
    return Written(round, len(text), sha256(text.encode()).hexdigest())


async def compose(ports: SummaryPorts, ctx: StepContext) -> Outcome:
    """The text of this round, stored; or, where the talk is long, one more section read."""
    summary = await current_paid(ports.summaries, ctx)
    if summary.composed_round == summary.round and summary.text:
        return written(summary.round, summary.text)
    transcript = await ports.transcripts.get(ctx.load_output("transcribe", Awaited).transcript_id)
    session = await ports.sessions.get(summary.session_id)
    if transcript is None or session is None:
        raise Fatal("The transcript was removed; subscribe again.")
    await ports.summaries.mark(summary.summary_id, summary.round, "writing")
    language = (transcript.language or "auto") if summary.language == "auto" else summary.language
    if not any(segment.text.strip() for segment in transcript.segments):
        text = NO_SPEECH["zh" if language.startswith("zh") else "en"]
        composed = await _said(await ctx.open_stream(), text)
    else:
        asked = WriteRequest(session.title, summary.style, language, transcript.segments, session.gaps)
        composed = await _asked(ports, ctx, summary, asked)
    if composed is None:
        return Yield()
    await ports.summaries.store_composed(summary.summary_id, summary.round, composed)
    stored = await current(ports.summaries, ctx)  # a worker that was thought dead may have been first
    return written(stored.composed_round, stored.text)


async def _said(sink: TextSink, text: str) -> Composed:
    await sink.write(text)
    await sink.flush()
    return Composed(text, [], Usage(), "")


async def _asked(ports: SummaryPorts, ctx: StepContext, summary: Summary, asked: WriteRequest) -> Composed | None:
    """The summary; None where it was one section's turn, or the model could not read so much at once."""
    writer, known = ports.writer, await ports.summaries.notes(summary.summary_id)
    try:
        task = Plan(asked, writer.model, writer.parts, known).next()
    except Unsplittable as error:
        raise Fatal(f"The model {writer.model} can read too little at once for this talk.") from error
    try:
        if task.request.kind == "summary":
            text, usage = await _streamed(writer, task.request, asked, await ctx.open_stream())
            spent = sum((notes.usage for notes in known.values()), usage)
            return Composed(text, chapters_of(text, asked.segments), spent, writer.model)
        notes = await _notes(writer, task)
    except TooLong:
        notes = Notes(task.request.segments[0].start, task.request.segments[-1].end, too_long=True)
    except WriterRefused as refusal:
        raise Fatal(str(refusal)) from refusal
    except WriterFault as fault:
        raise _retried(fault, ctx.attempt) from fault
    await ports.summaries.store_notes(
        summary.summary_id, summary.round, task.key, notes, section=task.section, sections=task.sections
    )
    return None


async def _streamed(writer: Writer, request: WriteRequest, asked: WriteRequest, sink: TextSink) -> tuple[str, Usage]:
    """The whole text as it went into the sink, and what it cost. Times in it are those of the talk."""
    parts: list[str] = []
    usage, times = Usage(), TimeFilter(SpokenTimes(asked.segments))
    async for item in writer.write(request):
        if isinstance(item, Usage):
            usage = item
        elif text := times.feed(item):
            parts.append(text)
            await sink.write(text)
    if rest := times.finish():
        parts.append(rest)
        await sink.write(rest)
    _check(writer, "".join(parts))
    await sink.flush()
    return "".join(parts), usage


async def _notes(writer: Writer, task: Task) -> Notes:
    parts: list[str] = []
    usage = Usage()
    async for item in writer.write(task.request):
        if isinstance(item, Usage):
            usage = item
        else:
            parts.append(item)
    _check(writer, "".join(parts))
    section = task.request.segments
    lines = noted("".join(parts), section)
    if sum(len(line.text) for line in lines) > SHORTER * sum(len(line.text) for line in section):
        raise UselessAnswer(f"The notes that {writer.model} took are hardly shorter than the talk.")
    return Notes(section[0].start, section[-1].end, lines, usage)


def _check(writer: Writer, text: str) -> None:
    if not text.strip():
        raise UselessAnswer(f"The writer {writer.model} gave an empty answer.")


def _retried(fault: WriterFault, attempt: int) -> Exception:
    """A writer's fault as the kernel's."""
    if isinstance(fault, UselessAnswer) and attempt >= MOST_ANSWERS:
        return Fatal(f"{fault} It was asked {attempt} times.")
    wished_s = fault.retry_after_s
    return RetryAfter(None if wished_s is None else min(max(wished_s, 0.5), LONGEST_RETRY_S), str(fault))
