"""The demo as scripts see it: `demo.json`, replaced processes, the end. Roles are stand-ins; the servers are real."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from app.ports import answers
from tests.integration import stand_in
from tests.integration.waiting import PATIENCE_S, until

Content = dict[str, Any]


def demo_file(folder: Path) -> Content | None:
    try:
        return json.loads((folder / "demo.json").read_bytes())
    except FileNotFoundError:
        return None


def _heed_interrupts() -> None:
    """Whoever runs the tests in the background may have told them, and so their children, to ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def demo_in(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Content]]:
    """A running demo of its own process, and its `demo.json`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
    command = [sys.executable, stand_in.__file__, "demo", str(folder)]
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_heed_interrupts,
    ) as process:
        try:
            yield process, until(lambda: demo_file(folder) or process.poll())
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Content]:
    with demo_in(folder) as (_, content):
        yield content


def process_of(content: Content, role: str) -> Content:
    return next(process for process in content["processes"] if process["role"] == role)


def processes(content: Content) -> list[psutil.Process]:
    return [psutil.Process(process["pid"]) for process in content["processes"]]


def test_the_file_has_the_promised_form(running: Content) -> None:
    people = [*running["users"], running["operator"]]
    assert running.keys() == {"url", "user", "users", "operator", "streams", "processes"}
    assert running["user"] == running["users"][0]
    assert len(running["users"]) == 3
    assert all(person.keys() == {"name", "password", "token"} for person in people)
    assert len({person["token"] for person in people}) == len(people)
    assert all(process.keys() == {"name", "role", "pid", "port"} for process in running["processes"])


def test_every_role_runs_as_a_process_of_its_own(running: Content) -> None:
    names = [process["name"] for process in running["processes"]]
    assert sorted(names) == ["asr", "mongo", "streams", "valkey", "web", "worker-1", "worker-2", "writer"]
    assert len({process["pid"] for process in running["processes"]}) == len(names)
    assert all(answers(process["port"]) for process in running["processes"] if process["role"] != "worker")


def test_streams_are_listed_with_whole_addresses(running: Content) -> None:
    port = process_of(running, "streams")["port"]
    [stream] = running["streams"]
    assert stream == {
        "title": "Night Talk",
        "url": f"http://127.0.0.1:{port}/live/night-talk.m3u8",
        "language": "en",
        "live_seconds": 60.0,
    }


def test_parts_learn_of_each_other_by_variables_only(running: Content) -> None:
    with urlopen(running["url"]) as answer:
        given = json.load(answer)
    ports = {process["role"]: process["port"] for process in running["processes"]}
    assert given["BATON_ASR_URL"] == f"http://127.0.0.1:{ports['asr']}"
    assert given["BATON_OPENAI_BASE_URL"] == f"http://127.0.0.1:{ports['writer']}/v1"
    assert given["BATON_ALLOW_HOSTS"] == f"127.0.0.1:{ports['streams']}"
    assert given["BATON_MONGO_URL"].startswith(f"mongodb://127.0.0.1:{ports['mongo']}/")
    assert given["BATON_REDIS_URL"] == f"redis://127.0.0.1:{ports['valkey']}/0"
    assert json.loads(given["BATON_SUGGESTED_STREAMS"]) == running["streams"]
    assert given["BATON_LEASE_SECONDS"] == "6"


@pytest.mark.parametrize("role", ["web", "asr", "writer", "streams", "valkey", "mongo"])
def test_a_killed_process_is_replaced_on_its_port_and_the_file_follows(
    running: Content, folder: Path, role: str
) -> None:
    killed = process_of(until(lambda: demo_file(folder)), role)
    psutil.Process(killed["pid"]).kill()
    now = until(lambda: (new := process_of(demo_file(folder) or running, role)) != killed and new)
    assert (now["name"], now["port"]) == (killed["name"], killed["port"])
    assert until(lambda: answers(now["port"]))


def test_a_killed_worker_is_replaced_under_another_name(running: Content, folder: Path) -> None:
    before = until(lambda: demo_file(folder))
    psutil.Process(process_of(before, "worker")["pid"]).kill()
    after = until(lambda: (new := demo_file(folder)) and new["processes"] != before["processes"] and new)
    names = {process["name"] for process in after["processes"] if process["role"] == "worker"}
    assert names == {"worker-2", "worker-3"}


def test_what_holds_passwords_is_for_its_owner_only(running: Content, folder: Path) -> None:
    assert (folder / "demo.json").stat().st_mode & 0o777 == 0o600
    assert (folder / "demo-accounts.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_in_order(tmp_path: Path, how: signal.Signals) -> None:
    with demo_in(tmp_path) as (demo, content):
        parts = processes(content)
        demo.send_signal(how)
        assert demo.wait(timeout=PATIENCE_S) == 0
    assert not any(part.is_running() for part in parts)
    assert demo_file(tmp_path) is None
    assert '"msg":"Shutting down","attr":{"exitCode":0}' in (tmp_path / "logs" / "mongo.log").read_text(
        encoding="utf-8"
    )


def test_a_killed_demo_leaves_no_process_and_its_people_stay(tmp_path: Path) -> None:
    with demo_in(tmp_path) as (demo, first):
        parts = processes(first)
        demo.kill()
        demo.wait()
        assert psutil.wait_procs(parts, timeout=PATIENCE_S)[1] == []
    (tmp_path / "demo.json").write_text('{"stale": true}')
    with demo_in(tmp_path) as (_, second):
        content = until(lambda: (new := demo_file(tmp_path)) and "stale" not in new and new)
    assert second
    assert content["users"] == first["users"]
    assert content["operator"] == first["operator"]


def test_a_second_demo_in_the_same_folder_is_refused(running: Content, folder: Path) -> None:
    with demo_in(folder) as (second, _):
        assert second.wait(timeout=PATIENCE_S) != 0
    assert demo_file(folder)
