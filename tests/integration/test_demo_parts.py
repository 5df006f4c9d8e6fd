"""Which parts a demo has, where they listen, and what they are told."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.binaries import ServerError
from app.demo_parts import Parts
from app.settings import Settings, Suggested

ELSEWHERE = Settings(
    mongo_url="mongodb://db.example/?replicaSet=rs0",
    redis_url="redis://cache.example/0",
    asr_url="http://speech.example",
    openai_base_url="https://llm.example/v1",
)


@pytest.fixture(autouse=True)
def a_clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("BATON_PORT", "BATON_LEASE_SECONDS", "BATON_MONGO_TIMEOUT_SECONDS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_what_runs_elsewhere_is_not_started_here(tmp_path: Path) -> None:
    parts = Parts.plan(ELSEWHERE, tmp_path)
    told = parts.environment("web")
    assert parts.ports.keys() == {"web", "streams"}
    assert parts.mongo is None
    assert parts.valkey is None
    assert told["BATON_MONGO_URL"] == ELSEWHERE.mongo_url
    assert told["BATON_REDIS_URL"] == ELSEWHERE.redis_url
    assert told["BATON_ASR_URL"] == ELSEWHERE.asr_url
    assert told["BATON_OPENAI_BASE_URL"] == ELSEWHERE.openai_base_url


def test_the_usual_port_is_given_up_if_somebody_has_it(tmp_path: Path, taken: int) -> None:
    parts = Parts.plan(Settings(port=taken), tmp_path)
    assert parts.ports["web"] != taken
    assert parts.site_url == f"http://127.0.0.1:{parts.ports['web']}"


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(
    tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATON_PORT", str(taken))
    with pytest.raises(ServerError, match=rf"BATON_PORT={taken}.*BATON_PORT=0"):
        Parts.plan(Settings(port=taken), tmp_path)


def test_parts_that_are_restarted_keep_their_ports(tmp_path: Path) -> None:
    parts = Parts.plan(Settings(port=0), tmp_path)
    assert len(set(parts.ports.values())) == 4
    assert parts.part("asr").port == parts.part("asr").port == parts.ports["asr"]


def test_a_site_for_all_addresses_is_reached_on_loopback(tmp_path: Path) -> None:
    assert Parts.plan(Settings(port=0, host="0.0.0.0"), tmp_path).site_url.startswith("http://127.0.0.1:")
    assert Parts.plan(Settings(port=0, host="::1"), tmp_path).site_url.startswith("http://[::1]:")


def test_the_origin_is_allowed_besides_what_the_user_allows(tmp_path: Path) -> None:
    parts = Parts.plan(Settings(port=0, allow_hosts="10.0.0.5:80"), tmp_path)
    assert parts.environment("web")["BATON_ALLOW_HOSTS"] == f"10.0.0.5:80,127.0.0.1:{parts.ports['streams']}"


def test_a_lease_that_the_user_chose_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Parts.plan(Settings(port=0), tmp_path).environment("web")["BATON_LEASE_SECONDS"] == "6"
    Path(".env").write_text("BATON_LEASE_SECONDS=30\n")
    assert "BATON_LEASE_SECONDS" not in Parts.plan(Settings(port=0), tmp_path).environment("web")
    monkeypatch.setenv("BATON_LEASE_SECONDS", "20")
    assert "BATON_LEASE_SECONDS" not in Parts.plan(Settings(port=0), tmp_path).environment("web")


def test_streams_that_the_user_suggests_replace_the_demos_own(tmp_path: Path) -> None:
    mine = [Suggested("Mine", "https://radio.example/live.m3u8", "en", 0)]
    told = Parts.plan(Settings(port=0, suggested_streams=mine), tmp_path).environment("web")
    assert [stream["title"] for stream in json.loads(told["BATON_SUGGESTED_STREAMS"])] == ["Mine"]


def test_each_process_knows_its_name(tmp_path: Path) -> None:
    part = Parts.plan(Settings(port=0), tmp_path).worker(lambda: "worker-7")
    assert part.env(part.names())["BATON_WORKER_NAME"] == "worker-7"


def test_a_proxy_is_not_asked_for_the_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "intranet.example")
    told = Parts.plan(Settings(port=0), tmp_path).environment("worker-1")
    assert told["no_proxy"] == told["NO_PROXY"] == "intranet.example,127.0.0.1"
