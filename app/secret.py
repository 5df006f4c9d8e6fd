"""The secret that signs cookies: the setting, or one made on the first run and kept in the data folder."""

import os
from pathlib import Path
from secrets import token_urlsafe

from app.settings import Settings

BYTES = 48


def secret_of(settings: Settings) -> str:
    """The secret. Processes that start together agree on the one that was written first."""
    if settings.secret:
        return settings.secret
    path = Path(settings.data_dir) / "secret"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        _write_first(path, token_urlsafe(BYTES))
    return path.read_text(encoding="ascii").strip()


def _write_first(path: Path, secret: str) -> None:
    """By a hard link: the file appears whole, and never replaces another one."""
    partial = path.with_name(f".secret.{os.getpid()}")
    partial.touch(mode=0o600)
    partial.write_text(secret, encoding="ascii")
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return
    finally:
        partial.unlink()
