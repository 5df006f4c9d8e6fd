"""The private servers: kept data, sole use of a folder, and nothing left behind however their parent ends."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from pymongo import MongoClient

from app.binaries import ServerError
from app.embedded import embedded_servers
from app.folder_lock import FolderInUse
from app.settings import Settings

PRIVATE = Settings(mongo_url="", redis_url="")
ROOT = Path(__file__).parents[2]
HOLD_SERVERS = """
import sys
from pathlib import Path
from app.embedded import embedded_servers
from app.settings import Settings
with embedded_servers(Path(sys.argv[1]), Settings()) as urls:
    print(urls.mongo, flush=True)
    sys.stdin.read()
"""


def notes(url: str) -> list[str]:
    with MongoClient(url) as client:
        return sorted(note["text"] for note in client.kept.notes.find())


def write_note(url: str, text: str) -> None:
    with MongoClient(url, w="majority", journal=True) as client:
        client.kept.notes.insert_one({"text": text})


def servers_of(folder: Path) -> list[psutil.Process]:
    """This process's servers that hold the lock of `folder`; others may belong to the test session."""
    children = psutil.Process().children()
    return [child for child in children if str(folder / "lock") in [file.path for file in child.open_files()]]


@contextmanager
def another_run(folder: Path) -> Iterator[tuple[psutil.Process, str]]:
    """A process of its own that has started servers in `folder`, and the address of its MongoDB."""
    command = [sys.executable, "-c", HOLD_SERVERS, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield psutil.Process(process.pid), process.stdout.readline().strip()
        finally:
            process.stdin.close()


def test_data_is_kept_over_a_restart_on_another_port(tmp_path: Path) -> None:
    with embedded_servers(tmp_path, PRIVATE) as first:
        write_note(first.mongo, "kept")
    with embedded_servers(tmp_path, PRIVATE) as second:
        assert second.mongo != first.mongo
        assert notes(second.mongo) == ["kept"]
        write_note(second.mongo, "kept too")
        assert notes(second.mongo) == ["kept", "kept too"]


def test_servers_listen_on_loopback_only(tmp_path: Path) -> None:
    with embedded_servers(tmp_path, PRIVATE):
        servers = servers_of(tmp_path)
        listening = [c.laddr.ip for server in servers for c in server.net_connections() if c.status == "LISTEN"]
    assert len(servers) == 2
    assert set(listening) == {"127.0.0.1"}


def test_nothing_is_left_behind_when_the_parent_is_killed(tmp_path: Path) -> None:
    with another_run(tmp_path) as (parent, url):
        write_note(url, "before the kill")
        servers = parent.children()
        parent.kill()
        parent.wait()
    assert len(servers) == 2
    assert psutil.wait_procs(servers, timeout=20)[1] == []
    with embedded_servers(tmp_path, PRIVATE) as urls:
        assert notes(urls.mongo) == ["before the kill"]


def test_a_folder_serves_one_run_at_a_time(tmp_path: Path) -> None:
    with (
        another_run(tmp_path) as (other, _),
        pytest.raises(FolderInUse) as refusal,
        embedded_servers(tmp_path, PRIVATE),
    ):
        pass
    assert str(tmp_path) in str(refusal.value)
    assert str(other.pid) in str(refusal.value)
    assert "BATON_DATA_DIR" in str(refusal.value)


def test_a_folder_stays_taken_while_a_server_of_a_killed_run_lives(tmp_path: Path) -> None:
    with another_run(tmp_path) as (parent, _):
        mongod = next(child for child in parent.children() if "mongod" in child.cmdline()[0])
        held = [file.path for file in mongod.open_files()]
    assert str(tmp_path / "lock") in held


def test_external_addresses_win(tmp_path: Path) -> None:
    external = Settings(mongo_url="mongodb://db.example/?replicaSet=rs0", redis_url="redis://cache.example/1")
    with embedded_servers(tmp_path, external) as urls:
        assert (urls.mongo, urls.redis) == (external.mongo_url, external.redis_url)
        assert servers_of(tmp_path) == []


def test_one_external_address_leaves_the_other_server_private(tmp_path: Path) -> None:
    with embedded_servers(tmp_path, Settings(mongo_url="mongodb://db.example/")) as urls:
        assert urls.mongo == "mongodb://db.example/"
        assert urls.redis.startswith("redis://127.0.0.1:")
        assert len(servers_of(tmp_path)) == 1


def test_a_server_that_cannot_start_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "mongo").mkdir()
    (tmp_path / "mongo" / "WiredTiger").write_text("not a database")
    (tmp_path / "mongo" / "WiredTiger.turtle").write_text("not a database")
    with (
        pytest.raises(ServerError, match="mongo ended while it was starting") as failure,
        embedded_servers(tmp_path, PRIVATE),
    ):
        pass
    assert "WiredTiger" in str(failure.value)
    assert str(tmp_path / "logs" / "mongo.log") in str(failure.value)
    assert servers_of(tmp_path) == []


def test_a_thread_that_may_end_cannot_start_servers(tmp_path: Path) -> None:
    raised: list[BaseException] = []

    def start() -> None:
        try:
            with embedded_servers(tmp_path, PRIVATE):
                pass
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(raised[0])


def test_a_tethered_process_whose_parent_is_gone_already_never_starts(tmp_path: Path) -> None:
    witness = tmp_path / "it-ran"
    tether = ROOT / "app" / "tether.py"
    somebody_else = os.getppid()
    done = subprocess.run([sys.executable, "-I", "-S", tether, str(somebody_else), "touch", str(witness)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not witness.exists()
