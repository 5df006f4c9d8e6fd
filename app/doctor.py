"""`baton doctor`: what is missing or unreachable on this machine, in plain words, each with what to do about it.

Only the standard library is imported at the top, so that it can also say that the packages are missing.
"""

import asyncio
import importlib.util
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.settings import Settings

OLDEST_PYTHON = (3, 11)
SPACE_NEEDED = 1 << 30
SPACE_WANTED = 5 << 30
IMPORTED = (
    *("litestar", "jinja2", "uvicorn", "httptools", "argon2", "markdown_it", "nh3", "motor", "pymongo", "redis"),
    *("msgspec", "httpx", "httpx2", "httpcore", "openai", "m3u8", "av", "cryptography", "numpy", "faster_whisper"),
)
"""Packages that the product imports."""


@dataclass(frozen=True)
class Finding:
    """One thing examined. `level` is `ok`, `note` (works, but worth knowing) or `missing`."""

    level: str
    text: str
    advice: str = ""


def examine() -> int:
    """Print every finding; the result is 1 if something needed is missing, else 0."""
    findings = [_show(check()) for check in (python_version, machine, packages)]
    if all(finding.level != "missing" for finding in findings):
        findings += _with_packages()
    missing = sum(finding.level == "missing" for finding in findings)
    print(f"\n{missing} missing: see above." if missing else "\nNothing is missing. `make demo` starts everything.")
    return 1 if missing else 0


def _with_packages() -> list[Finding]:
    """The checks that need the packages themselves."""
    from app.settings import SettingsError, load

    try:
        settings = load()
    except SettingsError as error:
        return [_show(Finding("missing", f"A setting is wrong. {error}", "README.md lists every setting."))]
    findings = [_show(check(settings)) for check in (data_folder, site_port, mongo, redis)]
    if all(finding.level != "missing" for finding in findings):
        findings.append(_show(private_servers(settings)))
    return findings + [_show(check(settings)) for check in (speech_model, speech_service, chat_endpoint)]


def _show(finding: Finding) -> Finding:
    print(f"{finding.level:8} {finding.text}", flush=True)
    if finding.advice:
        print(f"{'':8} → {finding.advice}", flush=True)
    return finding


def python_version() -> Finding:
    """Python itself."""
    version = platform.python_version()
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("missing", f"Python {version} is too old.", "Install Python 3.11 or newer, with venv.")
    return Finding("ok", f"Python {version}")


def machine() -> Finding:
    """System and processor."""
    name = f"{platform.system()} on {platform.machine()}"
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        return Finding("ok", name)
    return Finding(
        "note",
        f"{name}: no servers come with the packages here, and processes are not tied to their parent.",
        "Have mongod and valkey-server (or redis-server) on PATH, or set BATON_MONGO_URL and BATON_REDIS_URL.",
    )


def packages() -> Finding:
    """Packages of the lock file, by what the product imports of them."""
    absent = [name for name in IMPORTED if importlib.util.find_spec(name) is None]
    if absent:
        advice = "`make demo` installs them, or: pip install --require-hashes -r requirements.lock"
        return Finding("missing", f"Python packages are not installed: {', '.join(absent)}", advice)
    return Finding("ok", f"Python packages ({len(IMPORTED)} examined)")


def data_folder(settings: "Settings") -> Finding:
    """Whether the data folder can be written, has room, and is not in use."""
    from app.binaries import ServerError
    from app.folder_lock import FolderInUse, FolderLock

    folder = Path(settings.data_dir).resolve()
    try:
        with FolderLock(folder):
            free = shutil.disk_usage(folder).free
    except FolderInUse as error:
        return Finding("note", str(error))
    except ServerError as error:
        return Finding("missing", str(error))
    text = f"Data folder {folder}, {free / (1 << 30):.1f} GB free"
    if free < SPACE_NEEDED:
        return Finding("missing", text, "At least 1 GB is needed: free some space, or set BATON_DATA_DIR elsewhere.")
    if free < SPACE_WANTED:
        return Finding("note", text, "Enough to try it; MongoDB stops when a disk is full.")
    return Finding("ok", text)


def site_port(settings: "Settings") -> Finding:
    """Whether the site can listen where the settings say."""
    from app.ports import is_free

    if settings.port == 0 or is_free(settings.port, settings.host):
        return Finding("ok", f"Port {settings.port or '(any free one)'} of {settings.host} for the site")
    advice = "Fine if Baton runs already. Otherwise set BATON_PORT to another; unset, the demo takes a free one."
    return Finding("note", f"Port {settings.port} of {settings.host} is taken.", advice)


def mongo(settings: "Settings") -> Finding:
    """An external MongoDB, or a program for a private one."""
    from app.binaries import mongod_binary
    from app.reach import mongo_fault

    if settings.mongo_url:
        return _external("MongoDB", "BATON_MONGO_URL", settings.mongo_url, mongo_fault(settings.mongo_url))
    return _program("MongoDB", mongod_binary)


def redis(settings: "Settings") -> Finding:
    """An external Redis or Valkey, or a program for a private one."""
    from app.binaries import valkey_binary
    from app.reach import redis_fault

    if settings.redis_url:
        return _external("Redis", "BATON_REDIS_URL", settings.redis_url, redis_fault(settings.redis_url))
    return _program("Valkey", valkey_binary)


def private_servers(settings: "Settings") -> Finding:
    """Whether the private servers really start, in a folder of their own."""
    from app.binaries import ServerError
    from app.embedded import embedded_servers

    started_at = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="baton-doctor-") as folder:
        try:
            with embedded_servers(Path(folder), settings):
                elapsed_s = time.monotonic() - started_at
        except ServerError as error:
            return Finding("missing", f"A private server does not start. {error}")
    return Finding("ok", f"Private servers start and stop (ready in {elapsed_s:.1f} s)")


def speech_model(settings: "Settings") -> Finding:
    """Whether the speech model is there and whole; reads all of it."""
    from app.models import ModelMissing, assemble, installed_sources, model_folder, wrong_files

    try:
        wanted = model_folder(settings)
        if settings.asr_model != "base" or not Path(wanted).is_dir():
            where = "in that folder" if Path(wanted).is_dir() else "downloaded by faster-whisper at first use"
            return Finding("note", f"Speech model {wanted}, {where}; its files are not known to this check.")
        if wrong_files(Path(wanted)):
            assemble(installed_sources(), Path(wanted), trust_marker=False)
            return Finding("ok", f"Speech model {wanted} was damaged and has been made anew")
    except ModelMissing as error:
        return Finding("missing", str(error))
    return Finding("ok", f"Speech model {wanted}: every SHA-256 is right")


def speech_service(settings: "Settings") -> Finding:
    """An external speech service."""
    from app.reach import http_fault

    if url := settings.transcription_base_url:
        fault = http_fault(f"{url.rstrip('/')}/models", settings.transcription_api_key)
        return _external("Transcription endpoint", "BATON_TRANSCRIPTION_BASE_URL", url, fault)
    if not settings.asr_url:
        return Finding("ok", "Speech service: `baton demo` starts one (BATON_ASR_URL is not set)")
    fault = http_fault(f"{settings.asr_url.rstrip('/')}/healthz")
    return _external("Speech service", "BATON_ASR_URL", settings.asr_url, fault)


def chat_endpoint(settings: "Settings") -> Finding:
    """An external OpenAI-compatible endpoint."""
    from app.reach import http_fault

    if not settings.openai_base_url:
        return Finding("ok", "Writer: `baton demo` starts the built-in one (BATON_OPENAI_BASE_URL is not set)")
    fault = http_fault(f"{settings.openai_base_url.rstrip('/')}/models", settings.openai_api_key)
    return _external("Chat endpoint", "BATON_OPENAI_BASE_URL", settings.openai_base_url, fault)


def _external(title: str, variable: str, url: str, fault: Coroutine[Any, Any, str]) -> Finding:
    from app.reach import without_password

    text = asyncio.run(fault)
    shown = f"{title} at {without_password(url)}"
    if not text:
        return Finding("ok", shown)
    return Finding("missing", f"{shown}: {text}", f"Start it, or correct {variable}; unset, `baton demo` starts one.")


def _program(title: str, find: Callable[[Path], Path]) -> Finding:
    from app.binaries import ServerError

    try:
        with tempfile.TemporaryDirectory(prefix="baton-doctor-") as copies:
            return Finding("ok", f"{title}: {find(Path(copies))} runs")
    except ServerError as error:
        return Finding("missing", str(error))
