"""The addresses of files that people upload. An address names its owner, so that nobody else can subscribe to it."""

import re
from secrets import token_hex
from urllib.parse import quote

SCHEME = "upload://"
LONGEST_NAME = 120


def upload_address(user_id: str, name: str) -> str:
    """An address for a new file of that name; it is also the id that the file is stored under."""
    plain = re.sub(r"[\x00-\x1f/\\]+", " ", name).strip()[-LONGEST_NAME:] or "recording"
    return f"{SCHEME}{user_id}/{token_hex(10)}/{quote(plain)}"


def is_upload(url: str) -> bool:
    """Whether an address is one of ours rather than of the web."""
    return url.startswith(SCHEME)


def belongs_to(url: str, user_id: str) -> bool:
    """Whether the file at `url` was uploaded by that person."""
    return url.startswith(f"{SCHEME}{user_id}/")
