"""The few lines the writer says itself, in the language of the text around them. Data only."""

import msgspec


class Phrases(msgspec.Struct, frozen=True):
    """Lines of one language."""

    topics: str
    decisions: str
    actions: str
    no_decisions: str
    no_actions: str
    repetition: str
    repeated: str
    nothing: str
    untranslated: str
    """Said to a reader who wished for this language and gets another."""


ENGLISH = Phrases(
    topics="Topics",
    decisions="Decisions",
    actions="Actions",
    no_decisions="No decision was recognised in what was said.",
    no_actions="No action was recognised in what was said.",
    repetition="Repetition",
    repeated="From here on, what was said before is said again.",
    nothing="Nothing was said in this recording.",
    untranslated="These sentences are in the language they were spoken in: the built-in writer does not translate.",
)
CHINESE = Phrases(
    topics="议题",
    decisions="决定",
    actions="行动",
    no_decisions="没有识别到决定。",
    no_actions="没有识别到行动项。",
    repetition="内容重复",
    repeated="从这里起，前面说过的内容又说了一遍。",
    nothing="这段录音里没有人说话。",
    untranslated="以上是讲话原文的语言：内置写作器只摘录，不翻译。",
)


def phrases_for(wide: bool) -> Phrases:
    """Chinese lines for a Chinese text."""
    return CHINESE if wide else ENGLISH
