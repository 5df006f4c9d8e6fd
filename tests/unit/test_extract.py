"""The built-in writer's text: whole sentences of what was said, in order, none twice, with times that exist."""

import re
from pathlib import Path

import pytest

from app.writer.extract import summarise
from app.writer.phrases import CHINESE, ENGLISH
from app.writer.reading import STYLES, Task, read_lines

SCRIPTS = sorted((Path(__file__).parents[2] / "fixtures" / "scripts").glob("*.txt"))
EVERY_S = 7
CHINESE_MEETING = (
    "大家好，欢迎参加今天的会议。今天我们要讨论的是数据库的备份方案。上个月备份失败了两次，原因是磁盘空间不够。"
    "第一个方案是把旧的备份移到另一台机器上。第二个方案是只保留最近三十天的备份。我们决定采用第二个方案。"
    "王芳负责在周五之前写好清理脚本。下一个问题是恢复演练。恢复演练能证明备份真的可以用。"
    "我们决定每个季度做一次恢复演练。谢谢大家，下次见。"
)


def lines_of(text: str) -> list[str]:
    """Each sentence of a text."""
    return [said.strip() for said in re.findall(r"[^.!?。！？]+[.!?。！？]", text)]


def transcript(sentences: list[str]) -> str:
    """Sentences as lines with a time every few seconds."""
    times = (at * EVERY_S for at in range(len(sentences)))
    return "\n".join(f"[00:{at // 60:02d}:{at % 60:02d}] {said}" for at, said in zip(times, sentences, strict=True))


def written(text: str, style: str, language: str = "auto") -> str:
    return summarise(Task(read_lines(transcript(lines_of(text))), style, language))


def prose(summary: str) -> list[str]:
    """The sentences of a summary without its headings, marks and names of topics."""
    plain = [line for line in summary.splitlines() if not line.startswith("#")]
    return lines_of(
        re.sub(r"^- (\*\*.*?\*\*[:：] ?|\[.*?\] )?", "", "\n".join(plain), flags=re.MULTILINE).replace("\n", " ")
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("style", STYLES)
def test_every_sentence_was_said_and_none_is_there_twice(script: Path, style: str) -> None:
    said = lines_of(script.read_text(encoding="utf-8"))
    own = {ENGLISH.no_decisions, ENGLISH.no_actions}
    chosen = [sentence for sentence in prose(written(script.read_text(encoding="utf-8"), style)) if sentence not in own]
    assert chosen
    assert set(chosen) <= set(said)
    assert len(chosen) == len(set(chosen))
    assert len(chosen) < len(said)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("style", ["brief", "detailed", "chapters"])
def test_each_part_of_a_summary_keeps_the_order_of_the_talk(script: Path, style: str) -> None:
    text = script.read_text(encoding="utf-8")
    said = lines_of(text)
    opening, *rest = written(text, style).split("\n\n", 1)
    for part in (opening, *rest):
        places = [said.index(sentence) for sentence in prose(part)]
        assert places == sorted(places)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_chapters_begin_at_times_of_the_transcript(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    times = re.findall(r"^## \[(\d\d:\d\d:\d\d)\] \S", written(text, "chapters"), flags=re.MULTILINE)
    assert times == sorted(times)
    assert len(times) >= 2
    assert set(times) <= set(re.findall(r"\[(.*?)\]", transcript(lines_of(text))))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_last_third_of_a_talk_is_heard_too(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    said = lines_of(text)
    for style in ("brief", "detailed", "chapters", "notes"):
        assert max(map(said.index, prose(written(text, style)))) >= len(said) * 2 // 3, style


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_notes_are_of_all_stretches_with_times_and_a_good_deal_shorter(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    said = lines_of(text)
    lines = written(text, "notes").splitlines()
    assert all(re.match(r"- \[\d\d:\d\d:\d\d\] \S", line) for line in lines)
    places = [said.index(line[13:]) for line in lines]
    assert places == sorted(places)
    assert places[0] < len(said) / 3
    assert sum(map(len, lines)) < len(text) / 2


def test_minutes_tell_decisions_and_who_does_what() -> None:
    text = (
        "Good morning, and welcome to the meeting of the bridge team. We will talk about the north bridge. "
        "The inspection found rust on two of the cables. The cables are forty years old and carry most of the load. "
        "We decided to close the bridge at night until spring. Maria will order the new cables this week. "
        "The next topic is the budget. The new cables cost more than we have left this year. "
        "We agreed to ask the city for the difference. Thank you for coming, and goodbye."
    )
    _, decisions = written(text, "minutes").split(f"## {ENGLISH.decisions}")
    decided, actions = decisions.split(f"## {ENGLISH.actions}")
    assert "- We decided to close the bridge at night until spring." in decided
    assert "- We agreed to ask the city for the difference." in decided
    assert "- Maria will order the new cables this week." in actions


def test_chinese_minutes_name_subjects_and_not_the_goodbye() -> None:
    summary = written(CHINESE_MEETING, "minutes")
    topics, decisions = summary.split(f"## {CHINESE.decisions}")
    assert "我们决定采用第二个方案。" in decisions
    assert "我们决定每个季度做一次恢复演练。" in decisions
    assert "谢谢" not in summary
    assert "欢迎" not in topics


@pytest.mark.parametrize("style", STYLES)
def test_silence_is_said_and_nothing_else(style: str) -> None:
    assert summarise(Task([], style)) == ENGLISH.nothing
    assert summarise(Task([], style, "zh")) == CHINESE.nothing
    assert summarise(Task(read_lines("[00:00:01] [music]\n[00:00:09] ..."), style)) == ENGLISH.nothing


@pytest.mark.parametrize("style", [style for style in STYLES if style != "notes"])
def test_one_sentence_is_its_own_summary(style: str) -> None:
    only = "The harbour closes at nine because of the storm."
    assert written(only, style).startswith(only)


def test_a_repeated_talk_is_summarised_once() -> None:
    once = (Path(SCRIPTS[0]).read_text(encoding="utf-8") + " ").replace("\n", " ")
    chosen = prose(written(once * 5, "detailed"))
    assert len(chosen) == len(set(chosen))


def test_a_reader_of_another_language_is_told_that_nothing_is_translated() -> None:
    assert written("The harbour closes at nine because of the storm.", "brief", "zh").endswith(CHINESE.untranslated)
