"""The benchmark's harness still fits the kernel: a handful of workflows, whose figures say nothing."""

import asyncio
import json
import sys
from pathlib import Path


async def test_the_benchmark_measures_a_handful_and_prints_its_table(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    options = ["--tiny", "--peers", "", "--rounds", "1", "--parts", "w1a,writes", "--json", str(file)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench", *options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said
    figures = json.loads(file.read_text())["baton"]
    assert figures["w1a_per_s"] > 0, said
    assert figures["writes"]["durable"]["Instances.create"] == 1
    assert "| W1a workflows/s, all accepted first |" in said
