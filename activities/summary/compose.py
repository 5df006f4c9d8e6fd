"""`compose`: have the summary written, word by word into the client stream, and store exactly what was written.

A text that this round has stored already is never written twice; nothing is written where nobody spoke.
"""

from hashlib import sha256

import msgspec

from activities.payloads import Composed, Session, Summary, Transcript, Usage, WriteRequest
from activities.ports import UselessAnswer, Writer, WriterFault, WriterRefused
from activities.summary.chapters import chapters_of
from activities.summary.record import SummaryPorts, current, current_paid
from activities.summary.transcribe import Awaited
from kernel import Fatal, RetryAfter, StepContext, TextSink

LONGEST_RETRY_S = 600.0
MOST_ANSWERS = 4
"""Tries after which a model that answers, but with no summary, is not asked again."""
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


async def compose(ports: SummaryPorts, ctx: StepContext) -> Written:
    """The text of this round, stored."""
    summary = await current_paid(ports.summaries, ctx)
    if summary.composed_round == summary.round and summary.text:
        return written(summary.round, summary.text)
    transcript = await ports.transcripts.get(ctx.load_output("transcribe", Awaited).transcript_id)
    session = await ports.sessions.get(summary.session_id)
    if transcript is None or session is None:
        raise Fatal("The transcript was removed; subscribe again.")
    await ports.summaries.mark(summary.summary_id, summary.round, "writing")
    composed = await _composed(ports.writer, await ctx.open_stream(), summary, session, transcript, ctx.attempt)
    await ports.summaries.store_composed(summary.summary_id, summary.round, composed)
    stored = await current(ports.summaries, ctx)  # a worker that was thought dead may have been first
    return written(stored.composed_round, stored.text)


async def _composed(
    writer: Writer, sink: TextSink, summary: Summary, session: Session, transcript: Transcript, attempt: int
) -> Composed:
    language = (transcript.language or "auto") if summary.language == "auto" else summary.language
    if not any(segment.text.strip() for segment in transcript.segments):
        text = NO_SPEECH["zh" if language.startswith("zh") else "en"]
        await sink.write(text)
        await sink.flush()
        return Composed(text, [], Usage(), "")
    request = WriteRequest(session.title, summary.style, language, transcript.segments, session.gaps)
    text, usage = await _streamed(writer, request, sink, attempt)
    return Composed(text, chapters_of(text, transcript.segments), usage, writer.model)


async def _streamed(writer: Writer, request: WriteRequest, sink: TextSink, attempt: int) -> tuple[str, Usage]:
    """The whole text as it went into the sink, and what it cost. Writers' faults become the kernel's."""
    parts: list[str] = []
    usage = Usage()
    try:
        async for item in writer.write(request):
            if isinstance(item, Usage):
                usage = item
            else:
                parts.append(item)
                await sink.write(item)
        if not "".join(parts).strip():
            raise UselessAnswer(f"The writer {writer.model} gave an empty answer.")
    except WriterRefused as refusal:
        raise Fatal(str(refusal)) from refusal
    except WriterFault as fault:
        if isinstance(fault, UselessAnswer) and attempt >= MOST_ANSWERS:
            raise Fatal(f"{fault} It was asked {attempt} times.") from fault
        wished_s = fault.retry_after_s
        raise RetryAfter(None if wished_s is None else min(max(wished_s, 0.5), LONGEST_RETRY_S), str(fault)) from fault
    await sink.flush()
    return "".join(parts), usage
