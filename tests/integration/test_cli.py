"""The command line as a person meets it, each time as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.ports import free_port

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def baton(folder: Path, *words: str, python: tuple[str, ...] = (), **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command with these settings only. `python`: options of the interpreter."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
    environment |= {"BATON_DATA_DIR": str(folder), **settings}
    command = [sys.executable, *python, "-m", "app.cli", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=100)


def test_a_wrong_setting_is_named(folder: Path) -> None:
    done = baton(folder, "web", BATON_PORT="eighty")
    assert done.returncode == 1
    assert "BATON_PORT='eighty'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("role", "needed"), [("web", "BATON_REDIS_URL"), ("worker", "BATON_ASR_URL"), ("asr", "BATON_MONGO_URL")]
)
def test_a_role_alone_says_which_addresses_it_needs(folder: Path, role: str, needed: str) -> None:
    done = baton(folder, role)
    assert done.returncode == 1
    assert needed in done.stderr
    assert "baton demo" in done.stderr


def test_an_account_can_be_made_and_given_a_new_password(folder: Path, server_urls, db, prefix: str) -> None:
    known = {"BATON_MONGO_URL": server_urls[0], "BATON_MONGO_DATABASE": db.name}
    first, again = (baton(folder, "account", "li", *words, **known) for words in ([], ["--operator"]))
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert "li (subscriber)" in first.stdout
    assert "li (operator)" in again.stdout
    assert len({line for done in (first, again) for line in done.stdout.splitlines() if "password" in line}) == 2
    assert "BATON_MONGO_URL" in baton(folder, "account", "li").stderr


def test_no_command_shows_which_there_are(folder: Path) -> None:
    assert "doctor" in baton(folder).stderr


def test_a_role_without_its_packages_says_how_to_get_them(folder: Path) -> None:
    done = baton(folder, "web", python=("-S",))
    assert done.returncode == 1
    assert "make demo" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_doctor_works_without_any_package(folder: Path) -> None:
    done = baton(folder, "doctor", python=("-S",))
    assert done.returncode == 1
    assert "msgspec" in done.stdout
    assert "make demo" in done.stdout


def test_the_doctor_finds_nothing_missing_where_the_tests_run(folder: Path) -> None:
    done = baton(folder, "doctor", BATON_PORT="0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Private servers start and stop" in done.stdout
    assert "every SHA-256 is right" in done.stdout


def test_the_doctor_names_what_cannot_be_reached_and_hides_passwords(folder: Path) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    done = baton(
        folder,
        "doctor",
        BATON_ASR_URL=f"http://{nobody}",
        BATON_OPENAI_BASE_URL=f"http://{nobody}/v1",
        BATON_REDIS_URL=f"redis://me:hidden@{nobody}/0",
        BATON_ASR_MODEL="small",
    )
    assert done.returncode == 1
    assert "BATON_ASR_URL" in done.stdout
    assert "BATON_OPENAI_BASE_URL" in done.stdout
    assert "BATON_REDIS_URL" in done.stdout
    assert "hidden" not in done.stdout + done.stderr
    assert "3 missing" in done.stdout


def test_the_demo_names_a_data_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = baton(tmp_path / "file", "demo")
    assert done.returncode == 1
    assert str(tmp_path / "file") in done.stderr
    assert "Traceback" not in done.stderr
