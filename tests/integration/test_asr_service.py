"""The speech service as a process: real speech, real deaths, and refusals with a name."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from app.web.probes import NotWorking, http_probe
from tests.clips import picture_only
from tests.speech_kit import SENTENCES, Samples, SpeechService, error_rate, eventually, silence, spoken, wav

DATABASE = f"baton_test_{os.getpid()}"
WORST_ERROR_RATE = 0.10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("asr")


@pytest.fixture(scope="module")
def sentences(folder: Path) -> list[Samples]:
    return [spoken(sentence, folder) for sentence in SENTENCES]


@pytest.fixture(scope="module")
async def service(server_urls, folder: Path) -> AsyncIterator[SpeechService]:
    """One service for all tests that do not kill it."""
    running = SpeechService(server_urls[0], DATABASE, folder)
    await running.start()
    yield running
    await running.close()


@pytest.fixture
async def mortals(db, server_urls, folder: Path) -> AsyncIterator[list[SpeechService]]:
    """Two services on one database, neither of them started. Another database than that of `service`."""
    both = [SpeechService(server_urls[0], f"{DATABASE}_mortal", folder) for _ in range(2)]
    yield both
    for one in both:
        await one.close()
    await db.client.drop_database(f"{DATABASE}_mortal")


async def test_spoken_words_come_back_with_language_and_times(service: SpeechService, db, sentences) -> None:
    audio = np.concatenate(sentences[:4])
    task = await service.transcribe("spoken", wav(audio))
    assert error_rate(" ".join(SENTENCES[:4]), task) <= WORST_ERROR_RATE, task
    assert (task["state"], task["progress"], task["language"]) == ("completed", 100.0, "en")
    assert task["decoded_s"] == task["duration_s"] == pytest.approx(len(audio) / 16_000)
    times = [moment for segment in task["segments"] for moment in (segment["start"], segment["end"])]
    assert times == sorted(times)
    assert times[-1] <= task["duration_s"]


async def test_the_same_key_twice_is_one_task_and_its_audio_is_removed(service: SpeechService, db, sentences) -> None:
    audio = wav(sentences[0])
    first, second = await asyncio.gather(service.submit("twice", audio), service.submit("twice", audio))
    assert sorted([first.status_code, second.status_code]) == [200, 201]
    assert first.json()["task_id"] == second.json()["task_id"]
    task = await service.transcribe("twice", audio)
    third = await service.submit("twice", b"other bytes")
    assert (third.status_code, third.json()["segments"]) == (200, task["segments"])
    assert await db["asr_tasks"].count_documents({}) == 1

    async def removed() -> bool:
        return await db["asr_audio.files"].count_documents({}) == 0

    await eventually(removed)


async def test_silence_is_completed_without_a_word(service: SpeechService, db) -> None:
    task = await service.transcribe("silence", wav(silence(200)))
    assert (task["state"], task["segments"], task["language"], task["decoded_s"]) == ("completed", [], None, 200.0)


async def test_the_language_is_not_decided_on_the_silence_before(service: SpeechService, db, sentences) -> None:
    task = await service.transcribe("late", wav(np.concatenate([silence(100), sentences[0]])))
    assert task["language"] == "en"
    assert error_rate(SENTENCES[0], task) <= WORST_ERROR_RATE
    assert task["segments"][0]["start"] >= 99


async def test_a_forced_language_is_honoured(service: SpeechService, db, sentences) -> None:
    assert (await service.transcribe("forced", wav(sentences[0]), "de"))["language"] == "de"
    unknown = await service.transcribe("unknown", wav(sentences[0]), "xq")
    assert (unknown["state"], unknown["code"], unknown["retryable"]) == ("failed", "unknown_language", False)


async def test_tasks_side_by_side_do_not_mix_their_text(service: SpeechService, db, sentences) -> None:
    tasks = await asyncio.gather(*(service.transcribe(f"side {n}", wav(sentences[n])) for n in range(3)))
    for said, task in zip(SENTENCES, tasks, strict=False):
        assert error_rate(said, task) <= 0.2, task


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (wav(silence(0)), "no_samples"),
        (picture_only("matroska"), "no_audio_stream"),
        (b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nhttp://127.0.0.1:9/a.ts\n", "unreadable_audio"),
    ],
    ids=["header-only", "video-without-sound", "playlist"],
)
async def test_audio_that_holds_no_sound_fails_by_name_for_good(service: SpeechService, db, data, code: str) -> None:
    task = await service.transcribe("no sound", data)
    assert (task["state"], task["code"], task["retryable"]) == ("failed", code, False)
    assert task["error"]


async def test_bad_requests_are_refused_by_name_and_leave_nothing(service: SpeechService, db) -> None:
    answers = [
        await service.submit("empty", b""),
        await service.submit("", b"x"),
        await service.submit("k" * 201, b"x"),
        await service.submit("language", b"x", "English!"),
        await service.client.get("/tasks/asr_unknown"),
    ]
    told = [(answer.status_code, answer.json()["code"]) for answer in answers]
    assert told == [
        (422, "empty_audio"),
        (422, "bad_key"),
        (422, "bad_key"),
        (422, "bad_language"),
        (404, "not_found"),
    ]
    assert all(answer.json()["status_code"] == answer.status_code and answer.json()["detail"] for answer in answers)
    assert await db["asr_tasks"].count_documents({}) == 0
    assert await db["asr_audio.chunks"].count_documents({}) == 0


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(service: SpeechService) -> None:
    head = ["POST /tasks HTTP/1.1", "Host: x", "Idempotency-Key: k", f"Content-Length: {1 << 40}", "Connection: close"]
    answer = await service.raw("\r\n".join([*head, "", ""]).encode())
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"code":"too_large"' in answer


@pytest.mark.parametrize(("how", "status"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0)])
async def test_another_process_goes_on_behind_what_an_ended_one_recognised(mortals, sentences, how, status) -> None:
    audio = wav(np.concatenate([part for sentence in sentences for part in (sentence, silence(28))]))
    first, second = mortals
    await first.start()
    task_id = (await first.submit("long", audio)).json()["task_id"]
    before = await first.until(task_id, lambda task: bool(task["segments"]))
    assert before["state"] == "running"
    await second.start()
    assert await first.end(how) == status
    task = await second.until(task_id, lambda task: task["state"] in ("completed", "failed"))
    assert task["segments"][: len(before["segments"])] == before["segments"]
    assert len(task["segments"]) > len(before["segments"])
    assert error_rate(" ".join(SENTENCES), task) <= WORST_ERROR_RATE, task


async def test_without_a_model_the_service_says_so_and_takes_no_task(server_urls, db, tmp_path: Path) -> None:
    service = SpeechService(server_urls[0], DATABASE, tmp_path, BATON_ASR_MODEL=str(tmp_path / "absent"))
    await service.start()
    asked = await service.client.get("/healthz")
    health = asked.json()
    with pytest.raises(NotWorking, match="BATON_ASR_MODEL"):
        await http_probe(service.client, "/healthz")()
    answer = await service.submit("k", wav(silence(1)))
    await service.close()
    assert (asked.status_code, health["status"]) == (503, "degraded")
    assert "BATON_ASR_MODEL" in health["reason"]
    assert (answer.status_code, answer.json()["code"]) == (503, "model_missing")
    assert await db["asr_tasks"].count_documents({}) == 0


async def test_with_a_truncated_model_tasks_wait_and_the_service_says_why(
    service: SpeechService, mortals, folder, tmp_path, sentences
) -> None:
    for name in ("config.json", "tokenizer.json", "vocabulary.txt", "model.bin"):
        content = (folder / "models" / "whisper-base" / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2] if name == "model.bin" else content)
    halved = mortals[0]
    halved.environment["BATON_ASR_MODEL"] = str(tmp_path)
    await halved.start()
    task_id = (await halved.submit("k", wav(sentences[0]))).json()["task_id"]
    health = await halved.seen("/healthz", lambda health: health["status"] == "degraded")
    assert "cannot be loaded" in health["reason"]
    assert (await halved.submit("other", wav(sentences[0]))).status_code == 503
    await halved.until(task_id, lambda task: task["state"] == "queued")
    (tmp_path / "model.bin").write_bytes((folder / "models" / "whisper-base" / "model.bin").read_bytes())
    task = await halved.until(task_id, lambda task: task["state"] in ("completed", "failed"))
    assert error_rate(SENTENCES[0], task) <= WORST_ERROR_RATE
