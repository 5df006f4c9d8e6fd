"""Settings: every wrong one is named with what is accepted, and README lists exactly those that exist."""

import re
from pathlib import Path

import msgspec
import pytest

from app.settings import Settings, SettingsError, load, read_env_file

ROOT = Path(__file__).parents[2]
WRONG = {
    "BATON_PORT": "http",
    "BATON_ASR_PORT": "70000",
    "BATON_WRITER_PORT": "-1",
    "BATON_STREAMS_PORT": "1.5",
    "BATON_MONGO_TIMEOUT_SECONDS": "0",
    "BATON_LEASE_SECONDS": "soon",
    "BATON_POLL_SECONDS": "-5",
    "BATON_SCAN_SECONDS": "",
    "BATON_PERMIT_LEASE_SECONDS": "0",
    "BATON_WORKER_SLOTS": "0",
    "BATON_WRITER_CHARS_PER_SECOND": "-1",
    "BATON_QUOTA_PER_DAY": "none",
    "BATON_SUGGESTED_STREAMS": '[{"title": "no address"}]',
}


@pytest.fixture(autouse=True)
def without_an_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("name", "value"), WRONG.items())
def test_a_wrong_setting_is_named_with_its_value(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as failure:
        load({name: value})
    assert name in str(failure.value)
    assert repr(value) in str(failure.value)
    assert "xpected" in str(failure.value) or "missing" in str(failure.value)


def test_settings_that_are_not_given_have_their_defaults() -> None:
    assert load({"PATH": "/bin"}) == Settings()


def test_each_kind_of_value_is_understood() -> None:
    streams = '[{"title": "夜谈", "url": "http://a/b.m3u8", "language": "zh", "live_seconds": 60}]'
    given = {
        "BATON_PORT": "0",
        "BATON_LEASE_SECONDS": "2.5",
        "BATON_HOST": "0.0.0.0",
        "BATON_SUGGESTED_STREAMS": streams,
    }
    settings = load(given)
    assert (settings.port, settings.lease_seconds, settings.host) == (0, 2.5, "0.0.0.0")
    assert settings.suggested_streams[0].title == "夜谈"


def test_the_environment_wins_over_the_env_file() -> None:
    Path(".env").write_text('# mine\nBATON_PORT=9000\nBATON_HOST="::1"\n\nnot a setting\n')
    settings = load({"BATON_PORT": "9001"})
    assert (settings.port, settings.host) == (9001, "::1")


def test_an_env_file_that_is_not_there_says_nothing() -> None:
    assert read_env_file(Path("nowhere")) == {}


def rows_of(readme: str) -> dict[str, str]:
    """Variable and default of each row of the settings table."""
    lines = (ROOT / readme).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")] for line in lines if line.startswith("| `BATON_")]
    return {row[1]: row[2] for row in rows}


def default_of(field: msgspec.structs.FieldInfo) -> str:
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return f"{default:g}" if isinstance(default, float) else str(default)


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_the_readme_lists_every_setting_with_its_default(readme: str) -> None:
    fields = msgspec.structs.fields(Settings)
    assert rows_of(readme) == {f"BATON_{field.name.upper()}": default_of(field) for field in fields}


def test_the_example_env_file_names_only_settings_that_exist() -> None:
    known = {f"BATON_{field.name.upper()}" for field in msgspec.structs.fields(Settings)}
    named = set(re.findall(r"BATON_\w+", (ROOT / ".env.example").read_text(encoding="utf-8")))
    assert named <= known
