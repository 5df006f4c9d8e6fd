"""The session cookie: who signed in and until when, signed with HMAC-SHA-256. Pure.

The server keeps nothing of a session; a user's `session_generation` ends all earlier ones at once.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

import msgspec

NAME = "baton_session"
LIFETIME_S = 14 * 24 * 3600
_PURPOSE = b"baton session v1\0"


class Session(msgspec.Struct, frozen=True, array_like=True):
    """What a cookie says. `expires_at` is in seconds since 1970."""

    user_id: str
    generation: int
    expires_at: int


def sign(session: Session, secret: str) -> str:
    """The cookie's value."""
    payload = urlsafe_b64encode(msgspec.json.encode(session))
    return f"{payload.decode()}.{_signature(payload, secret)}"


def verify(value: str, secret: str, now_s: float) -> Session | None:
    """The session of a genuine cookie that has not run out; None for any other text."""
    payload, _, signature = value.partition(".")
    raw = payload.encode()
    if not hmac.compare_digest(signature.encode(), _signature(raw, secret).encode()):
        return None
    session = msgspec.json.decode(urlsafe_b64decode(raw), type=Session)
    return session if now_s < session.expires_at else None


def _signature(payload: bytes, secret: str) -> str:
    if not secret:
        raise ValueError("BATON_SECRET is empty: without it anybody could sign a session")
    return hmac.new(secret.encode(), _PURPOSE + payload, sha256).hexdigest()
