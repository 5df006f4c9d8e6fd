"""One engine measured, in a process and a Python environment of its own.

`python -m tests.bench.contender NAME OPTIONS`. OPTIONS is JSON: `parts` of the workload, `tiny`, the engine's own
`options`, and `file`, where the figures go as JSON.
"""

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.bench.workload import TINY, Engine, Sizes, measured

PLACES = {
    "baton": "tests.bench.ours:Baton",
    "restate": "tests.bench.peers.restate_engine:Restate",
    "dbos": "tests.bench.peers.dbos_engine:Dbos",
    "absurd": "tests.bench.peers.absurd_engine:AbsurdEngine",
}
LIMIT_S = 1500


def engine(name: str, options: dict[str, Any]) -> Engine:
    module, _, made = PLACES[name].partition(":")
    return getattr(import_module(module), made)(**options)


async def main(name: str, given: dict[str, Any]) -> None:
    sizes = TINY if given["tiny"] else Sizes()
    contender = engine(name, given["options"])
    async with asyncio.timeout(LIMIT_S):
        await contender.open()
        try:
            found = await measured(contender, sizes, given["parts"])
            if name == "baton":
                from tests.bench.ours_only import measured_too

                found |= await measured_too(contender, sizes, given["parts"])
        finally:
            await contender.close()
    Path(given["file"]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
