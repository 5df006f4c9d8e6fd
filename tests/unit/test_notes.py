"""Notes of a section, read as lines with times of that section."""

import pytest

from activities.payloads import SpeechSegment
from activities.summary.notes import noted

SECTION = [SpeechSegment(start, start + 8, "words") for start in (600.0, 610.0, 662.5)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "- [00:10:10] Queues lie.\n- [00:11:02] Leases end.",
            [(610.0, 662.5, "Queues lie."), (662.5, 670.5, "Leases end.")],
        ),
        ("* **[00:10:10]** – Queues lie.", [(610.0, 670.5, "Queues lie.")]),
        ("1. 10:10: Queues lie.", [(610.0, 670.5, "Queues lie.")]),
        (
            "# Notes\n- Without a time\n- [00:10:11] With one\n  going on",
            [
                (600.0, 600.0, "Notes"),
                (600.0, 610.0, "Without a time"),
                (610.0, 610.0, "With one"),
                (610.0, 670.5, "going on"),
            ],
        ),
        ("- [00:00:01] Before the section", [(600.0, 670.5, "Before the section")]),
        ("- [05:00:00] After it", [(600.0, 670.5, "After it")]),
        ("- [00:11:02] Late\n- [00:10:10] Early", [(610.0, 662.5, "Early"), (662.5, 670.5, "Late")]),
        ("\n \n- [00:10:10]\n", []),
    ],
)
def test_each_line_has_a_time_of_the_section(text: str, lines: list[tuple[float, float, str]]) -> None:
    assert noted(text, SECTION) == [SpeechSegment(*line) for line in lines]
