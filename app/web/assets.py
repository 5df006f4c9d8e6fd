"""Everything under `frontend/static`, read once and served from memory.

The address carries a digest of all files, so browsers may keep them for ever and a new release is never mixed with an
old one. An address of another release is answered by what is here now, and kept by nobody.
"""

import mimetypes
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

import msgspec
from litestar import Response, get
from litestar.params import FromPath

FOLDER = Path(__file__).parents[2] / "frontend" / "static"
KEEP = "public, max-age=31536000, immutable"
KNOWN = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Asset(msgspec.Struct, frozen=True):
    """One file."""

    content: bytes
    media_type: str


def _read(folder: Path) -> Mapping[str, Asset]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): Asset(path.read_bytes(), _media_type(path)) for path in files}


def _media_type(path: Path) -> str:
    return KNOWN.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"


def _digest(files: Mapping[str, Asset]) -> str:
    digest = sha256()
    for name, asset in files.items():
        digest.update(f"{name}\0{len(asset.content)}\0".encode() + asset.content)
    return digest.hexdigest()[:12]


FILES = _read(FOLDER)
RELEASE = _digest(FILES)
ROOT = f"/static/{RELEASE}"
"""Where the pages find the files."""


@get("/static/{release:str}/{name:path}", include_in_schema=False)
async def asset(release: FromPath[str], name: FromPath[PurePosixPath]) -> Response[bytes]:
    found = FILES.get(str(name).lstrip("/"))
    if found is None:
        return Response(b"", status_code=404, media_type="text/plain")
    headers = {"cache-control": KEEP if release == RELEASE else "no-store"}
    return Response(found.content, media_type=found.media_type, headers=headers)
