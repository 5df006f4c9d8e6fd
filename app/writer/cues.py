"""Sentences that state a decision or promise an action, known by their wording. Pure."""

import re
from collections.abc import Sequence

from app.writer.lexicon import COURTESY, STOPWORDS
from app.writer.sentences import Sentence

_DECISION = re.compile(
    r"\b(?:(?:we|i|they|he|she|board|team|committee|council|group|everyone|everybody)(?:'ve|\s+(?:have|has|all|both|now"
    r"|finally|also|then|just|already)){0,3}\s+(?:decided|agreed|approved|chose|chosen|settled\s+on|resolved|voted"
    r"|rejected|opted)|(?:the|our)\s+decision\s+(?:is|was)|(?:was|were|is|been)\s+(?:decided|agreed|approved|rejected)"
    r"|let's\s+go\s+with|we(?:'ll|\s+will)\s+go\s+with|we\s+now\s+\w+|from\s+now\s+on|decision\s+made)\b"
    r"|(?<!取)(?:决定(?!因素|性|于|权|着)|商定|敲定|拍板|一致同意|表决通过|我们同意|达成一致|达成共识|通过了)",
    re.IGNORECASE,
)
_DUTY = (
    r"(?:'ll|\s+(?:will|shall|must|needs?\s+to|has\s+to|have\s+to|(?:am|is|are)\s+going\s+to|"
    r"agreed\s+to|promised\s+to))"
)
_PERSONAL = re.compile(
    rf"\b(?:we|i|the\s+(?:team|committee|board|group|council|department|office)){_DUTY}\b(?!\s+(?:not|never|see|say|talk"
    r"|speak|discuss|show|tell|ask|look|hear|begin|start|be)\b)"
    r"|\b(?:action item|to-?do|follow up (?:with|on)|please (?:send|write|check|make|prepare|review|call|bring))\b"
    r"|(?:我们|我|大家|他|她|他们|团队|小组|小[\u4e00-\u9fff]|老[\u4e00-\u9fff])[^，。！？；]{0,8}(?:需要|负责|必须|会去|将会|要去|要在|会在|来做|跟进)"
    r"|(?:下周|明天|后天|本周|月底|下个月|[一二三四五六日天]之?前)[^，。！？；]{0,12}(?:要|会|将|完成|提交|交付|负责)|待办",
    re.IGNORECASE,
)
_NAMED = re.compile(rf"\b([A-Z][a-z]+)(?:\s+and\s+[A-Z][a-z]+)?{_DUTY}\b(?!\s+(?:not|never|be)\b)")
_SUPPOSED = re.compile(r"^(?:if|when|whenever|whoever)\b|^(?:如果|要是|假如|当)", re.IGNORECASE)


def decisions(said: Sequence[Sentence]) -> list[int]:
    """Numbers of the sentences that state what was decided."""
    return [at for at, sentence in enumerate(said) if _counts(sentence) and _DECISION.search(sentence.text)]


def actions(said: Sequence[Sentence]) -> list[int]:
    """Numbers of the sentences that say what somebody will do. A name is a word that is never written small."""
    small = {word for sentence in said for word in re.findall(r"\b[a-z]+\b", sentence.text)}

    def acts(text: str) -> bool:
        names = [name.lower() for name in _NAMED.findall(text)]
        return bool(_PERSONAL.search(text)) or any(name not in small | STOPWORDS for name in names)

    return [at for at, sentence in enumerate(said) if _counts(sentence) and acts(sentence.text)]


def _counts(sentence: Sentence) -> bool:
    text = sentence.text
    return not (_SUPPOSED.search(text) or COURTESY.search(text) or text.endswith(("?", "？")))
