"""A summary made of sentences that were said, in their order, none twice. Pure: the same text gives the same summary.

It understands nothing and adds nothing but headings out of the text's own words, and the few lines in `phrases`.
"""

from app.writer.forms import FORMS
from app.writer.phrases import phrases_for
from app.writer.ranking import Ranking
from app.writer.reading import Task
from app.writer.sentences import is_wide, sentences


def summarise(task: Task) -> str:
    """The summary as Markdown without a title line."""
    said = sentences(task.lines)
    wide = is_wide(" ".join(sentence.text for sentence in said))
    wished = {"zh": True, "en": False}.get(task.language[:2], wide)
    if not said:
        return phrases_for(wished).nothing
    text = FORMS[task.style](Ranking(said, task.title), phrases_for(wide))
    return text if wished == wide else f"{text}\n\n{phrases_for(wished).untranslated}"
