"""What the demo consists of: ports, addresses and the `BATON_*` variables by which the parts find each other."""

import itertools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from app.binaries import ServerError
from app.embedded import Mongod, Valkey
from app.ports import free_port, is_free
from app.settings import Settings, Suggested, read_env_file
from app.supervisor import Part

DEFAULTS = {
    "BATON_LEASE_SECONDS": "6",
    "BATON_MONGO_TIMEOUT_SECONDS": "2",
    "BATON_POLL_SECONDS": "2",
    "BATON_SCAN_SECONDS": "5",
}
"""The demo shows takeovers, so it waits less for the dead than a real installation would."""


@dataclass
class Parts:
    """The parts of one run. A server or service that the settings name elsewhere is not among them."""

    settings: Settings
    folder: Path
    given: frozenset[str]
    ports: dict[str, int]
    mongo: Mongod | None
    valkey: Valkey | None
    suggested: list[Suggested] = field(default_factory=list)

    @classmethod
    def plan(cls, settings: Settings, folder: Path) -> "Parts":
        """Choose ports and find the servers' programs. Raises ServerError."""
        given = frozenset(os.environ) | frozenset(read_env_file(Path(".env")))
        ports = {"web": _web_port(settings, given), "streams": settings.streams_port or free_port()}
        if not settings.asr_url:
            ports["asr"] = settings.asr_port or free_port()
        if not settings.openai_base_url:
            ports["writer"] = settings.writer_port or free_port()
        mongo = None if settings.mongo_url else Mongod(folder)
        valkey = None if settings.redis_url else Valkey(folder)
        return cls(settings, folder, given, ports, mongo, valkey)

    @property
    def mongo_url(self) -> str:
        return self.mongo.url if self.mongo else self.settings.mongo_url

    @property
    def redis_url(self) -> str:
        return self.valkey.url if self.valkey else self.settings.redis_url

    @property
    def streams_url(self) -> str:
        """The origin's root."""
        return self.root_of("streams")

    @property
    def site_url(self) -> str:
        """Where a browser on this machine finds the site."""
        host = self.settings.host
        here = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
        return f"http://[{here}]:{self.ports['web']}" if ":" in here else f"http://{here}:{self.ports['web']}"

    def root_of(self, role: str) -> str:
        """The address of a part that speaks HTTP."""
        return self.site_url if role == "web" else f"http://127.0.0.1:{self.ports[role]}"

    def part(self, role: str) -> Part:
        """A role with one process, known by the role's name."""
        return Part(role, self.ports[role], role_command(role), lambda: role, self.environment)

    def worker(self, names: Callable[[], str]) -> Part:
        """A worker. Each replacement has a name of its own, so that the operator's views tell them apart."""
        return Part("worker", 0, role_command("worker"), names, self.environment)

    def server(self, server: Mongod | Valkey) -> Part:
        """A private server."""
        return Part(server.name, server.port, server.command(), lambda: server.name)

    def environment(self, name: str) -> dict[str, str]:
        """Variables for the process of that name."""
        return {
            **{key: value for key, value in DEFAULTS.items() if key not in self.given},
            **{f"BATON_{role.upper()}_PORT": str(port) for role, port in self.ports.items() if role != "web"},
            **self._addresses(),
            "BATON_PORT": str(self.ports["web"]),
            "BATON_DATA_DIR": str(self.folder),
            "BATON_WORKER_NAME": name,
            "PYTHONUNBUFFERED": "1",
            **dict.fromkeys(("NO_PROXY", "no_proxy"), _direct_hosts()),
        }

    def _addresses(self) -> dict[str, str]:
        origin = f"127.0.0.1:{self.ports['streams']}"
        settings = self.settings
        suggested = settings.suggested_streams or self.suggested
        return {
            "BATON_MONGO_URL": self.mongo_url,
            "BATON_REDIS_URL": self.redis_url,
            "BATON_ASR_URL": settings.asr_url or self.root_of("asr"),
            "BATON_OPENAI_BASE_URL": settings.openai_base_url or f"{self.root_of('writer')}/v1",
            "BATON_ALLOW_HOSTS": ",".join(filter(None, [settings.allow_hosts, origin])),
            "BATON_SUGGESTED_STREAMS": msgspec.json.encode(suggested).decode(),
        }


def role_command(role: str) -> list[str]:
    """How a role is started as a process of its own."""
    return [sys.executable, "-m", "app.cli", role]


def worker_names() -> Callable[[], str]:
    """`worker-1`, `worker-2` and so on, never one twice."""
    numbers = itertools.count(1)
    return lambda: f"worker-{next(numbers)}"


def _direct_hosts() -> str:
    """Hosts that are reached without the user's proxy: the parts are on loopback, where no proxy can reach them."""
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    return ",".join(filter(None, [given, "127.0.0.1"]))


def _web_port(settings: Settings, given: frozenset[str]) -> int:
    if settings.port == 0:
        return free_port()
    if is_free(settings.port, settings.host):
        return settings.port
    if "BATON_PORT" in given:
        raise ServerError(
            f"BATON_PORT={settings.port}: another program listens on that port of {settings.host}. "
            "Stop it, choose another port, or set BATON_PORT=0 for a free one."
        )
    return free_port()
