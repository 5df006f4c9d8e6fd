"""The forms of a summary: which sentences go where. Pure.

Every form gives whole sentences in the order they were said, and no sentence in two places.
"""

from collections.abc import Callable, Sequence

from app.writer.cues import actions, decisions
from app.writer.headings import headings
from app.writer.lexicon import TURNING
from app.writer.phrases import Phrases
from app.writer.ranking import Ranking
from app.writer.sentences import is_wide
from app.writer.subjects import Subject, subjects

MOST_ITEMS = 10
"""Decisions, or actions, that are listed."""
LEAD = 3
"""Sentences of the first paragraph where the talk has as many subjects; otherwise one less."""
Form = Callable[[Ranking, Phrases], str]


def brief(ranking: Ranking, phrases: Phrases) -> str:
    """A paragraph with the main point, then the other points."""
    parts = subjects(ranking)
    lead = main_point(ranking, parts)
    stretches = parts if len(parts) >= LEAD else _quarters(ranking)
    points = _across(ranking, stretches, min(max(round(len(ranking.said) / 4), 3), 7), lead)
    return _blocks(_paragraph(ranking, lead), _items(ranking, points))


def detailed(ranking: Ranking, phrases: Phrases) -> str:
    """A paragraph, then a section for each subject; what is only said again has none."""
    parts = [part for part in subjects(ranking) if not part.repeats]
    return _sections(ranking, parts, [f"## {name}" for name in headings(ranking, parts)], share=0.5, most=6)


def chapters(ranking: Ranking, phrases: Phrases) -> str:
    """A paragraph, then a chapter for each subject with the time it begins at."""
    parts = _apart(ranking, subjects(ranking))
    names = [
        f"## {_stamp(ranking.said[part.sentences.start].start_s)}{phrases.repetition if part.repeats else name}"
        for name, part in zip(headings(ranking, parts), parts, strict=True)
    ]
    return _sections(ranking, parts, names, share=0.34, most=3, repeated=phrases.repeated)


def minutes(ranking: Ranking, phrases: Phrases) -> str:
    """A paragraph with the purpose, then topics, decisions and actions."""
    parts = [part for part in subjects(ranking) if not part.repeats]
    decided = ranking.best(MOST_ITEMS, decisions(ranking.said))
    agreed = ranking.best(MOST_ITEMS, actions(ranking.said), decided)
    lead = main_point(ranking, parts, [*decided, *agreed])
    return _blocks(
        _paragraph(ranking, lead),
        f"## {phrases.topics}",
        _topics(ranking, parts, [*decided, *agreed, *lead]),
        f"## {phrases.decisions}",
        _items(ranking, decided) or phrases.no_decisions,
        f"## {phrases.actions}",
        _items(ranking, agreed) or phrases.no_actions,
    )


def notes(ranking: Ranking, phrases: Phrases) -> str:
    """One of every four sentences, with its time."""
    chosen: list[int] = []
    for part in subjects(ranking):
        for first in () if part.repeats else part.sentences[::4]:
            chosen += ranking.best(1, range(first, min(first + 4, part.sentences.stop)), chosen)
    return "\n".join(f"- {_stamp(ranking.said[at].start_s)}{ranking.said[at].text}" for at in chosen)


FORMS: dict[str, Form] = {
    "brief": brief,
    "detailed": detailed,
    "chapters": chapters,
    "minutes": minutes,
    "notes": notes,
}


def main_point(ranking: Ranking, parts: Sequence[Subject], chosen: Sequence[int] = ()) -> list[int]:
    """The few sentences that say most of the whole; rather from its beginning, or the beginnings of its subjects."""
    several = len(parts) >= LEAD
    early = 0 if several else max(len(ranking.said) * 0.15, 3)
    openings = {part.sentences.start for part in parts}
    turns = [at in openings and TURNING.match(sentence.text) is not None for at, sentence in enumerate(ranking.said)]
    worth = [score * (2 if turns[at] else 1.6 if at < early else 1) for at, score in enumerate(ranking.scores)]
    return _across(ranking, parts, LEAD if several else LEAD - 1, chosen, worth)


def _across(
    ranking: Ranking,
    parts: Sequence[Subject],
    count: int,
    chosen: Sequence[int],
    worth: Sequence[float] | None = None,
) -> list[int]:
    """Up to `count` sentences: the best of each subject that has one, before a second of any."""
    worth = ranking.scores if worth is None else worth
    picked: list[int] = []
    while len(picked) < count:
        taken = [*chosen, *picked]
        found = [at for part in parts for at in ranking.best(1, part.sentences, taken, worth)]
        new = ranking.best(count - len(picked), found, taken, worth) if len(parts) > LEAD - 1 else []
        new = new or ranking.best(count - len(picked), range(len(ranking.said)), taken, worth)
        if not new:
            break
        picked += new
    return sorted(picked)


def _quarters(ranking: Ranking) -> list[Subject]:
    """A short talk by its length alone, so that its end is heard too."""
    each = max(-(-len(ranking.said) // 4), 1)
    return [Subject(range(at, min(at + each, len(ranking.said)))) for at in range(0, len(ranking.said), each)]


def _sections(
    ranking: Ranking,
    parts: Sequence[Subject],
    names: Sequence[str],
    *,
    share: float,
    most: int,
    repeated: str = "",
) -> str:
    """The main point, then under each name up to `most` sentences, and no more than a `share`, of the part."""
    lead = main_point(ranking, parts)
    used = list(lead)
    blocks = [_paragraph(ranking, lead)]
    for name, part in zip(names, parts, strict=True):
        count = min(most, max(1, round(len(part.sentences) * share)))
        told = [] if part.repeats else _spread(ranking, part.sentences, count, used)
        used += told
        if told or part.repeats:
            blocks += [name, _paragraph(ranking, told) or repeated]
    return _blocks(*blocks)


def _spread(ranking: Ranking, among: range, count: int, used: Sequence[int]) -> list[int]:
    """The best sentences of a part; where there are more than one, of both its halves."""
    if count < 2:
        return ranking.best(count, among, used)
    middle = (among.start + among.stop) // 2
    early = ranking.best(count - count // 2, range(among.start, middle), used)
    return early + ranking.best(count - len(early), range(middle, among.stop), [*used, *early])


def _topics(ranking: Ranking, parts: Sequence[Subject], used: list[int]) -> str:
    """One item for each subject: its name, and its best sentence if that is not told elsewhere."""
    items: list[str] = []
    for name, part in zip(headings(ranking, parts), parts, strict=True):
        point = ranking.best(1, part.sentences, used)
        used += point
        between = ("：" if is_wide(name) else ": ") if point else ""
        items.append(f"- **{name}**{between}{_paragraph(ranking, point)}")
    return "\n".join(items)


def _apart(ranking: Ranking, parts: Sequence[Subject]) -> list[Subject]:
    """Parts that begin at different times: a line may hold the end of one and the beginning of the next."""
    apart: list[Subject] = []
    for part in parts:
        first = part.sentences.start
        if apart and ranking.said[first].start_s == ranking.said[apart[-1].sentences.start].start_s:
            apart[-1] = Subject(range(apart[-1].sentences.start, part.sentences.stop), apart[-1].repeats)
        else:
            apart.append(part)
    return apart


def _stamp(start_s: int | None) -> str:
    return "" if start_s is None else f"[{start_s // 3600:02d}:{start_s // 60 % 60:02d}:{start_s % 60:02d}] "


def _paragraph(ranking: Ranking, chosen: Sequence[int]) -> str:
    texts = [ranking.said[at].text for at in chosen]
    return "".join(texts) if texts and is_wide(texts[0]) else " ".join(texts)


def _items(ranking: Ranking, chosen: Sequence[int]) -> str:
    return "\n".join(f"- {ranking.said[at].text}" for at in chosen)


def _blocks(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block)
