"""`make bench`: the kernel beside its peers, on the same workload, in one run on one machine.

Each engine is measured in a process of its own, one after the other; W1a and W1b go round three times, back to back,
and their medians count. A peer that is not installed (`make bench-peers`) is named as missing.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench import profiled
from tests.bench.table import Found, goals, ours, table

FOLDER = Path(os.environ.get("PEERS", ".baton/peers"))
SHARED = ("w1a", "w1b", "w1c", "w1d", "w2", "w3")
OURS = ("many", "fanout", "writes")
ROUNDED = ("w1a", "w1b")
NEEDS = {"restate": "node_modules/@restatedev/restate-server-linux-x64", "dbos": "", "absurd": ""}
POSTGRES = Path("/usr/lib/postgresql")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--peers", default=",".join(NEEDS), help="which ones to measure against (none: '')")
    parser.add_argument("--parts", default=",".join(SHARED + OURS), help="of the workload")
    parser.add_argument("--rounds", type=int, default=3, help="of W1a and W1b")
    parser.add_argument("--json", default="", help="file for the figures")
    parser.add_argument("--profile", action="store_true", help="only: where our worker's CPU goes in W1a")
    parser.add_argument("--driver", default="motor", choices=("motor", "pymongo"))
    parser.add_argument("--lease", type=float, default=15.0, help="of ours, in seconds")
    parser.add_argument("--tiny", action="store_true", help="a few of each, to see that it works")
    return parser.parse_args()


def missing(peer: str) -> str:
    """Why a peer cannot be measured; empty where it can."""
    if not (FOLDER / "v/bin/python").exists() or not (FOLDER / NEEDS[peer]).exists():
        return "not installed: make bench-peers"
    if peer in ("dbos", "absurd") and not list(POSTGRES.glob("*/bin/initdb")):
        return "needs PostgreSQL: apt-get install postgresql"
    return ""


def run(name: str, parts: list[str], options: dict[str, Any], tiny: bool) -> dict[str, Any]:
    """The figures of one engine; empty where it failed."""
    python = sys.executable if name == "baton" else str((FOLDER / "v/bin/python").absolute())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        given = {"parts": parts, "tiny": tiny, "options": options, "file": str(file)}
        command = [python, "-m", "tests.bench.contender", name, json.dumps(given)]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ended.returncode:
            print(f"· {name} failed in {', '.join(parts)}:\n{ended.stdout[-2000:]}", flush=True)
            return {}
        return json.loads(file.read_text(encoding="utf-8"))


def joined(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure that is a number; anything else as it was found last."""
    found: dict[str, Any] = {}
    for one in rounds:
        found |= one
    numbers = (name for name, value in found.items() if isinstance(value, float))
    return found | {name: statistics.median(one[name] for one in rounds if name in one) for name in numbers}


def measured(names: list[str], given: argparse.Namespace) -> Found:
    """W1a and W1b round by round, then whatever else is wanted."""
    parts, found = given.parts.split(","), dict[str, list[dict[str, Any]]]()
    turns = [[one for one in parts if one in ROUNDED]] * given.rounds + [[one for one in parts if one not in ROUNDED]]
    for number, turn in enumerate(turn for turn in turns if turn):
        for name in names:
            wanted = [one for one in turn if name == "baton" or one in SHARED]
            options = {"driver": given.driver, "lease_s": given.lease} if name == "baton" else {}
            print(f"· {name}: {', '.join(wanted)} ({number + 1} of {sum(map(bool, turns))})", flush=True)
            found.setdefault(name, []).append(run(name, wanted, options, given.tiny))
            kept(given.json, {one: joined(rounds) for one, rounds in found.items()})
    return {name: joined(rounds) for name, rounds in found.items()}


def kept(file: str, found: Found) -> None:
    """Write the figures so far: a long run may be ended in between."""
    if file:
        Path(file).write_text(json.dumps(found, indent=1), encoding="utf-8")


def profile(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "profile"
        options = {"driver": given.driver, "lease_s": given.lease, "profile": str(file)}
        run("baton", ["w1a"], options, given.tiny)
        print("\nWhere our worker's CPU goes in W1a (own time; profiling itself slows Python code down):\n")
        print("\n".join(profiled.summary(file)))


def main() -> None:
    given = arguments()
    if given.profile:
        return profile(given)
    wanted = [peer for peer in given.peers.split(",") if peer]
    absent = {peer: why for peer in wanted if (why := missing(peer))}
    found = measured(["baton", *(peer for peer in wanted if peer not in absent)], given)
    print(f"\n{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}")
    for name, figures in found.items():
        print(f"{name}: {figures.get('settings')}; {figures.get('versions')}")
    for peer, why in absent.items():
        print(f"{peer}: missing, {why}")
    for lines in (table(found), ours(found["baton"]), goals(found, given.lease)):
        print("\n" + "\n".join(lines))
    return None


if __name__ == "__main__":
    main()
