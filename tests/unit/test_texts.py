"""No page and no script names a text that is missing, and no text is left over."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from activities.payloads import Language, Style, SummaryState
from app.web.problems import CODES
from app.web.texts import FOR_SCRIPTS, ONLY_SCRIPTS, load_texts, speak, texts
from app.web.workflow_views import WAITS, Waiting
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


def test_both_catalogues_have_the_same_keys_and_places_to_fill_in():
    other = msgspec.json.decode((FRONTEND / "texts" / "zh.json").read_bytes(), type=dict[str, str])
    assert other.keys() == TEXTS.keys()
    told = {key: set(re.findall(r"{(\w+)}", text)) for key, text in TEXTS.items()}
    for key, text in other.items():
        places = set(re.findall(r"{(\w+)}", text))
        assert places == told[key] or (key.startswith("reason.") and places <= told[key]), key


@pytest.mark.parametrize(
    ("wished", "accepted", "spoken"),
    [
        (None, "", "en"),
        (None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, "fr, zh;q=0.5", "zh"),
        (None, "fr", "en"),
        ("en", "zh", "en"),
        ("zh", "en-GB", "zh"),
        ("../etc", "zh", "zh"),
    ],
)
def test_a_choice_counts_before_what_the_browser_asks_for(wished, accepted, spoken):
    speak(wished, accepted)
    assert texts.language == spoken
    assert texts("language.zh") == "中文"


def test_every_reason_has_its_text():
    source = (FRONTEND.parent / "app" / "reasons.py").read_text(encoding="utf-8")
    codes = set(re.findall(r"Reason\(\s*\"(\w+)\"", source)) | set(re.findall(r"\"(\w+_permit)\"", source))
    assert len(codes) > 8
    assert {f"reason.{code}" for code in codes} == {key for key in TEXTS if key.startswith("reason.")}


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
        "waits.": tuple(WAITS),
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
