"""Spoken clips and a speech service as a process of its own, for tests of speech recognition."""

import asyncio
import io
import os
import re
import signal
import sys
import wave
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import jiwer
import numpy as np
from numpy.typing import NDArray

from app.asr.audio import RATE, Recording
from app.ports import free_port
from fixtures.generate import speak

SENTENCES = [
    "The ferry to the island leaves at seven every morning.",
    "My sister painted the kitchen door in a bright yellow.",
    "Fresh bread was lying on the long wooden table.",
    "A young doctor moved into the house beside the river.",
    "They closed the mountain road because of heavy snow.",
    "The old teacher still repairs clocks in his garden.",
]
LEASE_S = 2.0

Samples = NDArray[np.float32]


def silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * RATE), np.float32)


def spoken(text: str, folder: Path) -> Samples:
    """`text` read aloud."""
    recording = Recording(speak(text, folder / "spoken.aac").read_bytes())
    try:
        return np.concatenate(list(recording.blocks()))
    finally:
        recording.close()


def wav(samples: Samples) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as output:
        output.setparams((1, 2, RATE, 0, "NONE", ""))
        output.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return file.getvalue()


def plain(text: str) -> str:
    """Lower case, no punctuation: what a word error rate is taken of."""
    return " ".join(re.findall(r"[a-z0-9']+", text.lower()))


def error_rate(said: str, task: dict) -> float:
    """Word error rate of a task's text."""
    return jiwer.wer(plain(said), plain(" ".join(segment["text"] for segment in task["segments"])))


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Return as soon as the answer is yes."""
    while True:
        if await holds():
            return
        await asyncio.sleep(0.05)


class SpeechService:
    """`baton asr` in a process that tests may kill. Its port stays the same over restarts."""

    def __init__(self, mongo_url: str, database: str, data_dir: Path, **settings: str) -> None:
        self.port = free_port()
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=20, trust_env=False)
        self.process: asyncio.subprocess.Process | None = None
        self._log = data_dir / f"asr-{self.port}.log"
        self.environment = os.environ | {
            "BATON_MONGO_URL": mongo_url,
            "BATON_MONGO_DATABASE": database,
            "BATON_DATA_DIR": str(data_dir),
            "BATON_ASR_PORT": str(self.port),
            "BATON_LEASE_SECONDS": str(LEASE_S),
            **settings,
        }

    async def start(self) -> None:
        """Start it and wait until it answers."""
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "app.cli", "asr"]
            self.process = await asyncio.create_subprocess_exec(
                *command, env=self.environment, stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL
            )
        while not await self._answers():
            assert self.process.returncode is None, self._log.read_text()
            await asyncio.sleep(0.05)

    async def end(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Send the signal; the exit status."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(how)
        return await self.process.wait()

    async def close(self) -> None:
        if self.process is not None:
            await self.end()
        await self.client.aclose()

    async def submit(self, key: str, audio: bytes, language: str = "auto") -> httpx.Response:
        headers = {"Idempotency-Key": key}
        return await self.client.post("/tasks", params={"language": language}, headers=headers, content=audio)

    async def transcribe(self, key: str, audio: bytes, language: str = "auto") -> dict:
        """Submit, and wait for the task's end."""
        answer = await self.submit(key, audio, language)
        assert answer.status_code in (200, 201), answer.text
        return await self.until(answer.json()["task_id"], lambda task: task["state"] in ("completed", "failed"))

    async def until(self, task_id: str, holds: Callable[[dict], bool]) -> dict:
        """The task as soon as `holds` is true of it."""
        return await self.seen(f"/tasks/{task_id}", holds)

    async def seen(self, path: str, holds: Callable[[dict], bool]) -> dict:
        """The answer of `path` as soon as `holds` is true of it."""
        while True:
            answer = (await self.client.get(path)).json()
            if holds(answer):
                return answer
            await asyncio.sleep(0.05)

    async def raw(self, request: bytes) -> bytes:
        """What comes back for these bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer

    async def _answers(self) -> bool:
        try:
            await self.client.get("/healthz")
        except httpx.TransportError:
            return False
        return True
