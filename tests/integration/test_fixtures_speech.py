"""Whisper base reads the minute-long recordings back, and also sentences that were never spoken before."""

import random
from pathlib import Path

import jiwer
import pytest
from faster_whisper import WhisperModel

from app.models import assemble, installed_sources
from fixtures import catalogue
from fixtures.catalogue import HERE
from fixtures.generate import speak

WORST_ERROR_RATE = 0.10
PLAIN = jiwer.Compose([jiwer.ToLowerCase(), jiwer.RemovePunctuation(), jiwer.RemoveMultipleSpaces(), jiwer.Strip()])


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> WhisperModel:
    folder = assemble(installed_sources(), tmp_path_factory.mktemp("whisper"))
    return WhisperModel(str(folder), device="cpu", compute_type="int8")


def read_back(whisper: WhisperModel, path: Path) -> str:
    segments, _ = whisper.transcribe(str(path), language="en", beam_size=1, temperature=0)
    return " ".join(segment.text for segment in segments)


def error_rate(words: str, heard: str) -> float:
    return jiwer.wer(PLAIN(words.replace("\n", " ")), PLAIN(heard.replace("-", " ")))


@pytest.mark.parametrize("part", ["night-talk", "field-notes"])
def test_a_recording_says_what_its_script_says(whisper: WhisperModel, part: str):
    heard = read_back(whisper, HERE / "audio" / f"{part}.aac")
    assert error_rate(catalogue.script(part), heard) <= WORST_ERROR_RATE, heard


def test_sentences_never_spoken_before_are_understood(whisper: WhisperModel, tmp_path: Path):
    who = ["The teacher", "A farmer", "My sister", "The old captain", "Our doctor"]
    does = ["bought", "painted", "found", "forgot", "carried"]
    what = ["a green bicycle", "seven yellow flowers", "the big wooden table", "a box of warm bread", "two silver keys"]
    where = ["in the garden", "near the railway station", "after the long meeting", "on a rainy morning"]
    chosen = [
        f"{random.choice(who)} {random.choice(does)} {random.choice(what)} {random.choice(where)}." for _ in range(6)
    ]
    heard = read_back(whisper, speak("\n".join(chosen), tmp_path / "sentences.aac"))
    assert error_rate(" ".join(chosen), heard) <= 2 * WORST_ERROR_RATE, (chosen, heard)
