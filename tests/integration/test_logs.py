"""JSON log lines that say where in the work they come from."""

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from app.logs import JsonLines
from kernel import Definition, Step, StepContext, workflow_id_of
from kernel.directives import Sleep
from kernel.testing import Fleet
from tests.shapes import ObjectInput

ROOT = Path(__file__).parents[2]
log = logging.getLogger("activities.of.this.test")


class Kept(logging.Handler):
    """Lines as they would be written."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines: list[dict] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def kept(caplog: pytest.LogCaptureFixture):
    handler = Kept()
    caplog.set_level(logging.INFO)
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


async def one(ctx: StepContext) -> dict | Sleep:
    log.info("outside")
    await asyncio.gather(asyncio.to_thread(log.info, "in a thread"), asyncio.create_task(said("in a task")))
    return {}


async def two(ctx: StepContext) -> dict:
    log.info("again")
    if ctx.attempt == 1:
        raise ValueError("once")
    return {}


async def said(text: str) -> None:
    log.info(text)


async def test_a_line_says_whose_work_it_was_in_which_step_and_attempt(kit, kept) -> None:
    definition = Definition("logged", (Step("one", one), Step("two", two, max_retry=1)))
    kit.parts.publisher.register(definition.plan)
    await kit.parts.publisher.start_or_resume("logged", "logged:1", ObjectInput("1", 1), round=1, priority=1)
    log.info("before")
    fleet = Fleet(kit.parts, [definition], kit.projections)
    await fleet.run(workflow_id_of("logged:1"))
    ours = [line for line in kept.lines if line["logger"] == log.name]
    where = [(line["message"], line.get("step"), line.get("attempt"), line.get("workflow_id")) for line in ours]
    at = workflow_id_of("logged:1")
    assert where[:2] == [("before", None, None, None), ("outside", "one", 1, at)]
    assert set(where[2:4]) == {("in a thread", "one", 1, at), ("in a task", "one", 1, at)}
    assert where[4:] == [("again", "two", 1, at), ("again", "two", 2, at)]
    assert all(line["worker"] and line["biz_key"] == "logged:1" for line in ours[1:])
    (failed,) = [line for line in kept.lines if line["logger"] == "kernel.engine" and "once" in line["message"]]
    assert (failed["step"], failed["attempt"]) == ("two", 1)


def test_a_fault_is_one_line_with_its_traceback() -> None:
    try:
        raise ValueError("数据\nno")
    except ValueError:
        record = log.makeRecord(log.name, logging.ERROR, "", 0, "saw %s", ("it",), sys.exc_info())
    line = JsonLines().format(record)
    said = json.loads(line)
    assert "\n" not in line
    assert (said["level"], said["message"], "Traceback" in said["error"]) == ("ERROR", "saw it", True)
    assert said["time"].endswith("Z")


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_setting_chooses_how_a_process_writes(form: str) -> None:
    code = f"import logging; from app.logs import log_as; log_as({form!r}); logging.getLogger('a').info('hello')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("{") is (form == "json")
    assert "hello" in done.stderr
