"""What OpenAI-compatible servers say when something is wrong, in words for people. Pure."""

from urllib.parse import urlsplit

PASSING = {408, 409, 425, 429}  # besides all of 5xx
MAX_DETAIL = 300


def passing(status: int) -> bool:
    """Whether the same request may be answered later."""
    return status >= 500 or status in PASSING


def shown(base_url: str) -> str:
    """An address without a name and password or a query, which may be secrets."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def detail(said: object) -> str:
    """The words of an error's body, whatever its form, on one line."""
    text = said.get("message") if isinstance(said, dict) else said
    return " ".join(str(text or "no reason given").split())[:MAX_DETAIL].rstrip(".")


def cause(error: Exception) -> str:
    """Why a connection failed, from the SDK's exception."""
    reason = error.__cause__ or error
    return str(reason) or type(reason).__name__
