"""Form of the Lua files: a header that says everything, and no number that Redis could take for text."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from redis.crc import key_slot
from redis.exceptions import ResponseError

import kernel
from kernel.clock import Clock
from kernel.errors import BrokerUnavailable
from kernel.frame_lists import StreamKey
from kernel.lanes import Lanes
from kernel.permits import Limits, Permits
from kernel.stream import ClientStreams

FILES = sorted((Path(kernel.__file__).parent / "lua").glob("*.lua"))
PARTS = ("Purpose:", "KEYS:", "ARGV:", "Result:")
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def header_of(file: Path) -> dict[str, str]:
    """The header's parts with their texts, in the order of the file."""
    comment = file.read_text(encoding="utf-8").split("\n\n")[0]
    assert all(line.startswith("-- ") for line in comment.splitlines())
    text = re.sub(r"\n--\s+(?!Purpose|KEYS|ARGV|Result)", " ", comment)
    return dict(line.removeprefix("-- ").split(maxsplit=1) for line in text.splitlines())


def body_of(file: Path) -> str:
    body = file.read_text(encoding="utf-8").split("\n\n", 1)[1]
    return re.sub(r"--.*", "", body)


def places(described: str) -> list[int]:
    """The positions that a KEYS or ARGV line describes: `1 name (…)  2-4 name (…)`."""
    found: list[int] = []
    for first, last in re.findall(r"(?:^|\) +)(\d)(?:-(\d))? ", described):
        found.extend(range(int(first), int(last or first) + 1))
    return found


@each_file
def test_the_header_names_purpose_keys_arguments_and_result(file: Path) -> None:
    header = header_of(file)
    assert tuple(header) == PARTS
    assert header["Purpose:"].endswith(".")


@each_file
def test_the_header_describes_every_key_and_argument_in_order(file: Path) -> None:
    header, body = header_of(file), body_of(file)
    for array in ("KEYS", "ARGV"):
        described = places(header[f"{array}:"])
        assert described == list(range(1, len(described) + 1))
        assert {int(index) for index in re.findall(rf"\b{array}\[(\d+)\]", body)} <= set(described)


@each_file
def test_every_number_goes_through_tonumber(file: Path) -> None:
    kinds = [kind for _, kind in re.findall(r"\d ([^()]*)\(([a-z]+)\)", header_of(file)["ARGV:"])]
    assert set(kinds) <= {"number", "text", "bytes"}
    described = re.findall(r"(\d)(?:-\d)? [^()]*\((text|bytes)\)", header_of(file)["ARGV:"])
    texts = {f"ARGV[{index}]" for index, _ in described}
    bare = re.sub(r"tonumber\(ARGV\[[^\]]+\]\)", "", body_of(file))
    assert set(re.findall(r"ARGV\[[^\]]+\]", bare)) <= texts


class KeyRecorder:
    """Takes the place of a client and writes down which keys each script is given."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def register_script(self, text: str) -> Any:
        async def run(keys: list[str], args: Any) -> Any:
            self.calls.append(list(keys))
            raise ResponseError("only the keys are wanted")

        return run


async def test_the_keys_of_each_call_share_one_slot_of_a_cluster() -> None:
    recorder, clock, key = KeyRecorder(), Clock(), StreamKey("summary:1", "wf_a", 2)
    lanes, streams = Lanes(recorder, "p", clock), ClientStreams(recorder, "p", clock)  # type: ignore[arg-type]  # a recorder
    permits = Permits(recorder, "p", clock, 30)  # type: ignore[arg-type]  # a recorder
    calls = [
        *(lanes.enqueue("wf_a", 0, datetime.now(UTC)), lanes.pop(), lanes.remove("wf_a"), lanes.figures()),
        *(permits.acquire("asr", "wf_a/s", "t", Limits()), permits.renew("asr", "wf_a/s", "t")),
        *(permits.release("asr", "wf_a/s", "t"), permits.figures("asr")),
        *(streams.reset(key), streams.notify(key), streams.end(key, b""), streams.terminal(key)),
    ]
    for call in calls:
        try:
            await call
        except BrokerUnavailable:
            continue
    assert len(recorder.calls) == len(calls)
    for keys in recorder.calls:
        assert len({key_slot(name.encode()) for name in keys}) == 1
