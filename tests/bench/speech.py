"""Words and time of our speech recognition beside others with the same model, in one run: `make bench-speech`.

The six recorded talks of the demo, one after the other, against the scripts they were read from. Every contender
reads the same bytes with two threads; its time includes loading the model.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import jiwer
from faster_whisper import BatchedInferencePipeline, WhisperModel

from activities.adapters.windows import SegmentWindows
from activities.payloads import WindowPoint
from app.asr.recognition import Recognition
from app.asr.whisper import Whisper
from app.models import model_folder
from app.settings import Settings
from fixtures.adts import split
from fixtures.catalogue import script
from fixtures.timeline import lay_out

TALKS = ("night-talk", "harbor", "kitchen", "library", "lighthouse", "field-notes")
AUDIO = Path("fixtures/audio")
THREADS = 2
SEGMENT_S = 3.0
WORDS = jiwer.Compose(
    [
        jiwer.ToLowerCase(),
        jiwer.RemovePunctuation(),
        jiwer.SubstituteRegexes({r"\s+": " "}),  # a script's and a tool's lines end with their sentences
        jiwer.Strip(),
        jiwer.ReduceToListOfListOfWords(),
    ]
)


@dataclass(frozen=True)
class Segment:
    """A segment as the recorder would have stored it."""

    sequence: int
    start_s: float
    duration_s: float
    data: bytes
    discontinuity: bool = False


def main() -> None:
    folder = model_folder(Settings())
    data = b"".join((AUDIO / f"{talk}.aac").read_bytes() for talk in TALKS)
    said = " ".join(script(talk) for talk in TALKS)
    tool = sys.argv[1] if len(sys.argv) > 1 else ""
    contenders: dict[str, Callable[[], str]] = {
        "baton, whole recording": lambda: whole(folder, data),
        "baton, live windows": lambda: asyncio.run(live(folder, data)),
        "faster-whisper, sequential": lambda: sequential(folder, data),
        "faster-whisper, batched": lambda: batched(folder, data),
    }
    if tool:
        contenders["whisper-ctranslate2"] = lambda: command(tool, folder, data)
        contenders["whisper-ctranslate2, batched"] = lambda: command(tool, folder, data, "--batched", "True")
    seconds = sum(one.duration_s for one in segments(data))
    print(f"{seconds:.0f} s of speech, {len(said.split())} words, model {Path(folder).name}, {THREADS} threads\n")
    print(f"{'':30} {'word errors':>12} {'seconds':>9} {'of real time':>13}")
    for name, recognise in contenders.items():
        began = time.perf_counter()
        heard = recognise()
        took = time.perf_counter() - began
        errors = jiwer.wer(said, heard, reference_transform=WORDS, hypothesis_transform=WORDS)
        print(f"{name:30} {errors:11.2%} {took:9.1f} {took / seconds:13.3f}", flush=True)


def recognised(model: Whisper, audio: bytes, language: str | None) -> tuple[str, str | None]:
    words: list[str] = []
    for step in Recognition(lambda: model, audio, language).steps():
        words += [segment.text for segment in step.segments]
        language = step.language
    return " ".join(words), language


def whole(folder: str, data: bytes) -> str:
    return recognised(Whisper(folder, threads=THREADS, parallel=1), data, None)[0]


async def live(folder: str, data: bytes) -> str:
    """As it goes while a stream is live: a window as soon as there is enough for one."""
    stored = segments(data)
    captured = 0

    async def beyond(_: str, number: int) -> AsyncIterator[Segment]:
        for segment in stored[max(number + 1, 0) : captured]:
            yield segment

    windows, model = SegmentWindows(beyond), Whisper(folder, threads=THREADS, parallel=1)
    point, language, texts = WindowPoint(), None, list[str]()
    while True:
        over = captured == len(stored)
        window = await windows.next("session", point, over=over)
        if window:
            text, language = recognised(model, window.audio, language)
            texts.append(text)
            point = window.following
        elif over:
            return " ".join(texts)
        captured += not over


def segments(data: bytes) -> list[Segment]:
    """The stream cut as a live origin cuts it."""
    line = lay_out([split(data)], SEGMENT_S)
    return [
        Segment(number, line.begins_s(number), line.length_s(number), b"".join(line.frames_of(number)))
        for number in range(line.count)
    ]


def sequential(folder: str, data: bytes) -> str:
    model = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=THREADS)
    with tempfile.NamedTemporaryFile(suffix=".aac") as file:
        file.write(data)
        file.flush()
        found, _ = model.transcribe(file.name, vad_filter=True)
        return " ".join(one.text for one in found)


def batched(folder: str, data: bytes) -> str:
    model = BatchedInferencePipeline(WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=THREADS))
    with tempfile.NamedTemporaryFile(suffix=".aac") as file:
        file.write(data)
        file.flush()
        found, _ = model.transcribe(file.name, batch_size=4)
        return " ".join(one.text for one in found)


def command(tool: str, folder: str, data: bytes, *more: str) -> str:
    """The command-line tool."""
    with tempfile.TemporaryDirectory() as place:
        audio = Path(place) / "talks.aac"
        audio.write_bytes(data)
        options = ["--device", "cpu", "--compute_type", "int8", "--threads", str(THREADS), *more]
        options += ["--output_format", "txt", "--output_dir", place, "--verbose", "False"]
        subprocess.run([tool, str(audio), "--model_directory", folder, *options], check=True, capture_output=True)
        return (Path(place) / "talks.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
