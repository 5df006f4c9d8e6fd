"""A program that plays any role of the demo as far as a supervisor can see: it listens, answers, shows its settings.

Run as a program it is the stand-in itself; `demo FOLDER` is a whole demo with real servers and roles of stand-ins.
"""

import asyncio
import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

STREAMS = [{"title": "Night Talk", "path": "/live/night-talk.m3u8", "language": "en", "live_seconds": 60.0}]


class Answer(BaseHTTPRequestHandler):
    """`/streams.json` is the origin's list; anything else shows the `BATON_*` variables."""

    def do_GET(self) -> None:
        shown = {name: value for name, value in os.environ.items() if name.startswith("BATON_")}
        body = json.dumps(STREAMS if self.path == "/streams.json" else shown).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def stand_in(port: int, *options: str) -> list[str]:
    """Command line of one that listens on `port`; with the option `deaf` it ignores SIGTERM."""
    return [sys.executable, __file__, str(port), *options]


def role_command(role: str) -> list[str]:
    """In the place of `app.demo_parts.role_command`: the port comes from the role's variable, as in the real roles."""
    variable = {"web": "BATON_PORT", "worker": ""}.get(role, f"BATON_{role.upper()}_PORT")
    return [sys.executable, __file__, variable] if variable else ["sleep", "600"]


def demo(folder: str) -> None:
    """The real demo over stand-ins, until a signal."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from app import demo_parts
    from app.demo import run
    from app.settings import Settings

    demo_parts.role_command = role_command
    asyncio.run(run(Settings(data_dir=folder, port=0, asr_model="stand-in")))


def main() -> None:
    where, *options = sys.argv[1:]
    if where == "demo":
        demo(*options)
        return
    if "deaf" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    port = int(where if where.isdigit() else os.environ[where])
    ThreadingHTTPServer(("127.0.0.1", port), Answer).serve_forever()


if __name__ == "__main__":
    main()
