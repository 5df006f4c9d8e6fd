"""No page and no script names a text that is missing, and no text is left over."""

import re
from pathlib import Path
from typing import get_args

import msgspec

from activities.payloads import Language, Style, SummaryState
from app.web.problems import CODES
from app.web.texts import FOR_SCRIPTS, ONLY_SCRIPTS, load_texts
from app.web.workflow_views import Waiting
from kernel.model import StepStatus

FRONTEND = Path(__file__).parents[2] / "frontend"
PAGES = Path(__file__).parents[2] / "app" / "web" / "pages"
TEXTS = msgspec.json.decode((FRONTEND / "texts" / "en.json").read_bytes(), type=dict[str, str])
CALL = re.compile(r"""\bt(?:exts)?\(f?["'`]([\w.]+?\.?)(?:["'`]|\$\{|\{| ?["'] ?~)""")


def keys_in(folder: Path, pattern: str) -> set[str]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob(pattern))
    return set(CALL.findall(text))


def script_keys() -> set[str]:
    named = keys_in(FRONTEND / "static", "*.js")
    return {key if key.startswith(FOR_SCRIPTS) else f"{ONLY_SCRIPTS}{key}" for key in named}


USED = keys_in(FRONTEND / "templates", "*.html") | keys_in(PAGES, "*.py") | script_keys()


def test_every_text_that_is_named_exists():
    whole = {key for key in USED if not key.endswith(".")}
    assert len(whole) > 80
    assert whole - TEXTS.keys() == set()


def test_every_text_is_used():
    stems = tuple(key for key in USED if key.endswith("."))
    assert {key for key in TEXTS if key not in USED and not key.startswith(stems)} == set()


def test_every_value_of_a_list_has_its_text():
    lists = {
        "state.": get_args(SummaryState),
        "style.": get_args(Style),
        "language.": get_args(Language),
        "step_status.": tuple(StepStatus),
        "step.": ("preprocess", "transcribe", "compose", "finalize"),
        "workflow.act.": ("supersede", "retry", "release", "repair"),
    }
    assert {stem + value for stem, values in lists.items() for value in values} - TEXTS.keys() == set()


def test_every_problem_page_is_about_a_code_that_exists():
    named = {key.removeprefix("problem.") for key in TEXTS if key.startswith("problem.")} - {"home", "other"}
    assert named - CODES.keys() == set()


def test_texts_given_to_scripts_cannot_end_their_element():
    texts = load_texts("en")
    assert "<" not in texts.for_scripts
    assert texts("removed.text", title="</script>", seconds=10).startswith("“</script>”")


def test_waiting_is_a_struct_of_plain_values():
    assert msgspec.json.encode(Waiting("timer", "its next look", None, None))
