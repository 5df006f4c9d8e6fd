"""Chapters are read from what was written and moved to times that exist."""

import pytest

from activities.payloads import Chapter, SpeechSegment
from activities.summary.chapters import chapters_of

SPOKEN = [SpeechSegment(start, start + 8, "words") for start in (0.4, 10.0, 62.5, 125.25, 3725.0)]


@pytest.mark.parametrize(
    ("line", "chapter"),
    [
        ("## [00:01:02] Why queues lie", Chapter(62.5, "Why queues lie")),
        ("### 1:02:05 – The end", Chapter(3725.0, "The end")),
        ("## Leases (02:06)", Chapter(125.25, "Leases")),
        ("- **00:10** Questions", Chapter(10.0, "Questions")),
        ("1. [00:10] Questions", Chapter(10.0, "Questions")),
        ("## [00:00] 开场：为什么", Chapter(0.4, "开场：为什么")),
        ("* 02:09 *Tokens* and `leases`", Chapter(125.25, "Tokens and leases")),
    ],
)
def test_a_heading_or_item_with_a_time_is_a_chapter(line: str, chapter: Chapter) -> None:
    assert chapters_of(f"Intro.\n\n{line}\n\nMore.", SPOKEN) == [chapter]


@pytest.mark.parametrize(
    "line",
    [
        "At 00:10 he said something.",
        "- They met at 10:30 in the hall, and [00:10] is no heading",
        "## Version 1:2",
        "## [00:10]",
        "## [09:59:59] Long after the last word",
        "## A ratio of 16:9",
    ],
)
def test_other_lines_are_not(line: str) -> None:
    assert chapters_of(line, SPOKEN) == []


def test_chapters_come_in_order_of_time_and_the_first_of_two_counts() -> None:
    text = "## [01:03] Second\n## [00:10] First\n## [00:11] Again\n"
    assert chapters_of(text, SPOKEN) == [Chapter(10.0, "First"), Chapter(62.5, "Second")]


def test_nothing_was_said_and_there_are_no_chapters() -> None:
    assert chapters_of("## [00:10] Silence", []) == []
