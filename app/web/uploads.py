"""`POST /api/uploads`: a file of sound or video, to be summarised as a stream is, by the address that it gets here."""

from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from litestar import Response, Router, post
from litestar.params import QueryParameter

from activities.uploads import upload_address
from app.web.access import signed_in
from app.web.parts import Parts, SignedIn
from app.web.problems import Problem

Name = Annotated[str, QueryParameter(min_length=1, max_length=300)]


class Uploaded(msgspec.Struct, frozen=True):
    """What to subscribe to, within a day."""

    url: str
    size_bytes: int


@post("/", tags=["summaries"], summary="Upload a file", request_max_body_size=None)
async def upload(request: SignedIn, parts: Parts, name: Name) -> Response[Uploaded]:
    """The body is the file itself; its `name` becomes the title. Subscribe to the `url` in the answer."""
    address = upload_address(request.user.user_id, name)
    limit = parts.settings.upload_megabytes * 1_000_000
    size = await parts.uploads.store(address, _bounded(request.stream(), limit))
    return Response(Uploaded(address, size), status_code=201)


async def _bounded(pieces: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > limit:
            raise Problem("too_large", f"A file may have {limit // 1_000_000} MB.")
        yield piece
    if not size:
        raise Problem("invalid_request", "The request holds no file.")


router = Router("/api/uploads", route_handlers=[upload], guards=[signed_in])
