"""`POST /hooks/streams/{stream_id}`: what a stream's own system says of it. No account: the signature is the key."""

from typing import Annotated, Any

import msgspec
from litestar import Request, post
from litestar.params import FromPath, HeaderParameter

from app.stream_hooks import HookRefused
from app.web.parts import Parts
from app.web.problems import Problem

Timestamp = Annotated[str, HeaderParameter(name="X-Baton-Timestamp", max_length=20)]
Signature = Annotated[str, HeaderParameter(name="X-Baton-Signature", max_length=200)]


class HookAnswer(msgspec.Struct, frozen=True):
    """Whether the session still listens."""

    accepted: bool


@post("/hooks/streams/{stream_id:str}", tags=["hooks"], status_code=202, summary="A stream has started or ended")
async def stream_hook(
    request: Request[Any, Any, Any],
    parts: Parts,
    stream_id: FromPath[str],
    timestamp: Timestamp = "",
    signature: Signature = "",
) -> HookAnswer:
    """`{"id", "event": "started" or "ended"}`, signed: `sha256=` and the HMAC of `timestamp.body` in hexadecimal.

    The timestamp is in seconds since 1970 and may be five minutes off. Repetitions and any order are harmless.
    """
    try:
        return HookAnswer(await parts.hooks.take(stream_id, timestamp, signature, await request.body()))
    except HookRefused as refused:
        raise Problem("bad_signature", "The signature or its timestamp is not right for this stream.") from refused
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise Problem("invalid_request", f"The body is no event: {error}") from error
