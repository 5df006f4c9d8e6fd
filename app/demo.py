"""`baton demo`: every part of Baton on this machine, each a process of its own that may be killed at any time.

The parts learn of each other by `BATON_*` variables only, as they would anywhere else. `demo.json` in the data folder
appears when the site answers, follows every replaced process, and goes when the demo ends.
"""

import asyncio
import contextlib
import shutil
import signal
import time
from pathlib import Path
from urllib.parse import urljoin

import httpx

from app import demo_accounts
from app.binaries import ServerError
from app.demo_accounts import DemoAccounts
from app.demo_file import DemoFile, Process, path_in
from app.demo_parts import Parts, worker_names
from app.embedded import Mongod, Valkey, last_words
from app.folder_lock import FolderLock
from app.models import ModelMissing, model_folder
from app.reload import source_changes
from app.settings import Settings, Suggested
from app.supervisor import Kept, Part, Supervisor

WORKERS = 2
READY_TIMEOUT_S = 120.0
LOOK_EVERY_S = 0.05
STOP_ORDER = [({"web", "worker"}, 8.0), ({"asr", "writer", "streams"}, 4.0), ({"valkey"}, 2.0), ({"mongo"}, 10.0)]


def say(line: str) -> None:
    """A line for the person at the console; nobody listening is no reason to stop."""
    with contextlib.suppress(OSError):
        print(line, flush=True)


async def run(settings: Settings, *, reload: bool = False) -> None:
    """Run the demo until SIGINT, SIGTERM or SIGHUP. Raises ServerError if it cannot be brought up."""
    folder = Path(settings.data_dir).resolve()
    with FolderLock(folder) as lock:
        path_in(folder).unlink(missing_ok=True)
        demo = Demo(Parts.plan(settings, folder), lock.fd)
        try:
            await _until_asked_to_stop(demo, reload)
        finally:
            path_in(folder).unlink(missing_ok=True)
            await demo.stop()


async def _until_asked_to_stop(demo: "Demo", reload: bool) -> None:
    asked = asyncio.create_task(_stop_signal())
    work = asyncio.create_task(demo.live(reload))
    done, _ = await asyncio.wait({asked, work}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if work in done:
        await work
    demo.closing = True
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    say("Stopping …")


async def _stop_signal() -> None:
    asked = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) is not signal.SIG_IGN:  # nohup means it
            asyncio.get_running_loop().add_signal_handler(name, asked.set)
    await asked.wait()


class Demo:
    """One run of all the parts."""

    def __init__(self, parts: Parts, lock_fd: int) -> None:
        self.parts = parts
        self.closing = False
        self._accounts: DemoAccounts | None = None
        self._up = False
        self._logs = _fresh_logs(parts.folder / "logs")
        self._supervisor = Supervisor(self._logs, say, self._write_file, lock_fd)

    async def live(self, reload: bool) -> None:
        """Bring everything up; then stay, restarting web and workers after source changes if `reload`."""
        try:
            accounts = self._accounts = await self._bring_up()
        except* ServerError as group:
            raise ServerError("\n".join(str(error) for error in group.exceptions)) from None
        self._up = True
        self._write_file()
        self._announce(accounts)
        if not reload:
            await asyncio.Event().wait()
        async for path in source_changes():
            say(f"{path} changed: web and workers start again")
            await self._supervisor.replace({"web", "worker"})

    async def stop(self) -> None:
        """End everything in order, each within its time."""
        self._up, self.closing = False, True
        for roles, timeout_s in STOP_ORDER:
            await self._supervisor.stop(roles, timeout_s)
        await self._supervisor.close()

    async def _bring_up(self) -> DemoAccounts:
        parts = self.parts
        async with asyncio.TaskGroup() as group:
            for server in filter(None, (parts.mongo, parts.valkey)):
                group.create_task(self._bring_up_server(server))
            group.create_task(self._bring_up_part(parts.part("streams")))
        parts.suggested = await self._demo_streams()
        accounts = demo_accounts.load_or_make(parts.folder / "demo-accounts.json")
        await demo_accounts.create(accounts, parts.mongo_url, parts.settings)
        await asyncio.to_thread(self._prepare_model)
        names = worker_names()
        async with asyncio.TaskGroup() as group:
            for role in ("asr", "writer", "web"):
                if role in parts.ports:
                    group.create_task(self._bring_up_part(parts.part(role)))
            for _ in range(WORKERS):
                await self._supervisor.start(parts.worker(names))
        return accounts

    async def _bring_up_server(self, server: Mongod | Valkey) -> None:
        started_at = time.monotonic()
        kept = await self._supervisor.start(self.parts.server(server))
        try:
            await asyncio.to_thread(server.make_ready, lambda: not (kept.hopeless or self.closing))
        except ServerError as error:
            raise ServerError(f"{error}\n{last_words(self._supervisor.log_of(kept.name))}") from None
        _say_ready(kept, started_at)

    async def _bring_up_part(self, part: Part) -> None:
        started_at = time.monotonic()
        kept = await self._supervisor.start(part)
        async with httpx.AsyncClient(trust_env=False, timeout=2) as client:
            while not await _answers(client, f"{self.parts.root_of(part.role)}/healthz", part.role):
                if kept.hopeless or time.monotonic() - started_at > READY_TIMEOUT_S:
                    raise ServerError(f"{part.role} does not start.\n{last_words(self._supervisor.log_of(kept.name))}")
                await asyncio.sleep(LOOK_EVERY_S)
        _say_ready(kept, started_at)

    async def _demo_streams(self) -> list[Suggested]:
        """What the demo's origin plays, with absolute addresses."""
        root = f"{self.parts.streams_url}/"
        async with httpx.AsyncClient(trust_env=False) as client:
            listing = (await client.get(urljoin(root, "streams.json"))).raise_for_status().json()
        return [
            Suggested(item["title"], urljoin(root, item["path"]), item["language"], float(item["live_seconds"]))
            for item in listing
        ]

    def _prepare_model(self) -> None:
        try:
            model_folder(self.parts.settings)
        except ModelMissing as error:
            say(f"Speech cannot be transcribed. {error}")

    def _write_file(self) -> None:
        if self._up and self._accounts:
            users, operator = self._accounts.users, self._accounts.operator
            streams, processes = self.parts.suggested, self._processes()
            DemoFile(self.parts.site_url, users[0], users, operator, streams, processes).write(self.parts.folder)

    def _processes(self) -> list[Process]:
        return [Process(kept.name, kept.part.role, kept.process.pid, kept.part.port) for kept in self._supervisor.kept]

    def _announce(self, accounts: DemoAccounts) -> None:
        port = self.parts.settings.port
        if self.parts.ports["web"] != port and port:
            say(f"Port {port} is taken by another program, so this run uses a free one.")
        user, operator = accounts.users[0], accounts.operator
        say(f"\nBaton is at {self.parts.site_url}")
        say(f"  sign in as {user.name} / {user.password}, as operator with {operator.name} / {operator.password}")
        say(f"  accounts, streams and processes: {path_in(self.parts.folder)}")
        say(f"  output of every process: {self._logs}    stop everything: Ctrl-C\n")


async def _answers(client: httpx.AsyncClient, url: str, role: str) -> bool:
    """Whether the part is up. The site must be well; the others may still be waiting for something themselves."""
    try:
        response = await client.get(url)
    except httpx.HTTPError:
        return False
    return response.status_code == httpx.codes.OK or role != "web"


def _say_ready(kept: Kept, started_at: float) -> None:
    where = f" on port {kept.part.port}" if kept.part.port else ""
    say(f"{kept.name} ready in {time.monotonic() - started_at:.1f} s{where}")


def _fresh_logs(folder: Path) -> Path:
    """An empty folder for this run's logs; those of the run before are kept in `previous`, older ones go."""
    previous = folder / "previous"
    shutil.rmtree(previous, ignore_errors=True)
    old = list(folder.glob("*.log"))
    previous.mkdir(parents=True)
    for log in old:
        log.rename(previous / log.name)
    return folder
