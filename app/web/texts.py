"""All words of the pages, one catalogue per language in `frontend/texts`.

A key that a catalogue lacks is an error, in tests and on the page, never an empty place. `texts` speaks the language
of the request that is answered.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parents[2] / "frontend" / "texts"
ONLY_SCRIPTS = "js."
FOR_SCRIPTS = (ONLY_SCRIPTS, "state.", "step_status.", "reason.")
"""Keys with these prefixes are given to the page's scripts, which know them without the first one."""


class Texts:
    """One catalogue."""

    def __init__(self, language: str, entries: Mapping[str, str]) -> None:
        self.language = language
        self._entries = entries
        shown = {key.removeprefix(ONLY_SCRIPTS): text for key, text in entries.items() if key.startswith(FOR_SCRIPTS)}
        self.for_scripts = msgspec.json.encode(shown).decode().replace("<", "\\u003c")
        """JSON that may stand inside a `script` element."""

    def __call__(self, key: str, **values: object) -> str:
        """The text of `key`, its `{names}` filled in."""
        return self._entries[key].format(**values)

    def __contains__(self, key: str) -> bool:
        return key in self._entries


def load_texts(language: str) -> Texts:
    """The catalogue of a language."""
    return Texts(language, msgspec.json.decode((FOLDER / f"{language}.json").read_bytes(), type=dict[str, str]))


CATALOGUES = {language: load_texts(language) for language in ("en", "zh")}
_language: ContextVar[str] = ContextVar("language", default="en")


class _Chosen:
    """The catalogue in the language of the request that is answered."""

    @property
    def language(self) -> str:
        return _language.get()

    @property
    def for_scripts(self) -> str:
        return CATALOGUES[self.language].for_scripts

    def __call__(self, key: str, **values: object) -> str:
        return CATALOGUES[self.language](key, **values)

    def __contains__(self, key: str) -> bool:
        return key in CATALOGUES[self.language]


texts = _Chosen()


def speak(wished: str | None, accepted: str) -> None:
    """Answer in the language a person chose, else in the first one of `Accept-Language` that there is."""
    named = [part.split(";")[0].strip().lower().split("-")[0] for part in accepted[:1000].split(",")]
    found = [language for language in (wished, *named) if language in CATALOGUES]
    _language.set(found[0] if found else "en")
