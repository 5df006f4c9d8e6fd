"""The command `baton`: one sub-command per role. Everything is imported late, so that `baton doctor` always works."""

import argparse
import asyncio
import importlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.settings import Settings

ENTRIES = {
    "web": ("app.web.server", "the pages and the API", ("mongo_url", "redis_url")),
    "worker": ("app.worker_process", "runs workflows", ("mongo_url", "redis_url", "asr_url", "openai_base_url")),
    "asr": ("app.asr.server", "the speech service", ("mongo_url",)),
    "writer": ("app.writer.server", "the built-in writer behind an OpenAI-compatible API", ()),
}
"""Role: module whose `run(settings)` plays it, what it is, and the settings it cannot do without."""

OURS = {"app", "kernel", "activities"}


class UsageError(Exception):
    """What was asked for cannot be done as things are."""


def main(arguments: list[str] | None = None) -> int:
    """Run a sub-command; the result is the process's exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        if options.command == "doctor":
            from app.doctor import examine

            return examine()
        return _run(options)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in OURS:
            raise
        print(_absent(error), file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not _is_plain(error):
            raise
        print(f"baton {options.command}: {error}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="baton", description="Written summaries of live streams.")
    commands = parser.add_subparsers(dest="command", metavar="command")
    demo = commands.add_parser("demo", help="everything on this machine, nothing needed beforehand")
    demo.add_argument("--reload", action="store_true", help="restart web and workers when a source file changes")
    demo.add_argument("--end-with-parent", action="store_true", help="stop when the starting process is gone")
    for role, (_, help_text, _) in ENTRIES.items():
        commands.add_parser(role, help=help_text)
    account = commands.add_parser("account", help="makes a person who may sign in, or gives one a new password")
    account.add_argument("name")
    account.add_argument("--operator", action="store_true", help="an operator instead of a subscriber")
    commands.add_parser("streams", help="the demo's live streams")
    commands.add_parser("doctor", help="says what is missing or unreachable, and what to do")
    return parser


def _run(options: argparse.Namespace) -> int:
    from app.settings import load

    settings = load()
    if options.command == "demo":
        _demo(settings, options)
    elif options.command == "streams":
        _streams(settings)
    elif options.command == "account":
        _account(settings, options)
    else:
        _role(options.command, settings)
    return 0


def _demo(settings: "Settings", options: argparse.Namespace) -> None:
    from app.demo import run
    from app.tether import end_with_parent

    if options.end_with_parent:
        end_with_parent(os.getppid(), signal.SIGTERM)
    asyncio.run(run(settings, reload=options.reload))


def _account(settings: "Settings", options: argparse.Namespace) -> None:
    from app.account import make

    _demand(settings, ("mongo_url",))
    asyncio.run(make(settings, options.name, "operator" if options.operator else "subscriber"))


def _demand(settings: "Settings", needed: tuple[str, ...]) -> None:
    absent = [f"BATON_{name.upper()}" for name in needed if not getattr(settings, name)]
    if absent:
        raise UsageError(
            f"{' and '.join(absent)} must be set: this command runs one role and starts no servers. "
            "`baton demo` runs everything; README.md lists the settings."
        )


def _role(role: str, settings: "Settings") -> None:
    from app.logs import log_as

    module, _, needed = ENTRIES[role]
    _demand(settings, needed)
    log_as(settings.log_format)
    asyncio.run(importlib.import_module(module).run(settings))


def _streams(settings: "Settings") -> None:
    """Becomes the origin: it is a program of its own, which nothing in the product imports."""
    state = Path(settings.data_dir) / "streams"
    command = [sys.executable, "-m", "fixtures.origin", "--port", str(settings.streams_port), "--state", str(state)]
    os.execv(sys.executable, command)  # noqa: S606 - our own program, and becoming it keeps the pid


def _absent(error: ModuleNotFoundError) -> str:
    return (
        f"The Python package {error.name!r} is not installed in {sys.prefix}.\n"
        "In a clone of the project, `make demo` sets everything up; `baton doctor` says what else is missing."
    )


def _is_plain(error: Exception) -> bool:
    """Whether the error's text was written for the person at the console."""
    from app.binaries import ServerError
    from app.settings import SettingsError

    return isinstance(error, ServerError | SettingsError | UsageError)


if __name__ == "__main__":
    sys.exit(main())
