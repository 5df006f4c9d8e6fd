"""`GET /healthz`: which parts work. Only a missing MongoDB makes the answer a 503: everything else only delays."""

import asyncio
import logging
from typing import Literal

import msgspec
from litestar import Response, get

from app.web.parts import Parts, Probe, WebParts
from app.web.probes import NotWorking

log = logging.getLogger(__name__)
PATIENCE_S = 1.0


class Health(msgspec.Struct, frozen=True):
    """Each part: `ok`, or in words what is wrong with it."""

    status: Literal["ok", "degraded"]
    mongo: str
    redis: str
    asr: str
    writer: str


@get("/healthz", tags=["health"], summary="Which parts work")
async def healthz(parts: Parts) -> Response[Health]:
    found = await words_of_parts(parts)
    status = "ok" if all(word == "ok" for word in found.values()) else "degraded"
    return Response(Health(status, **found), status_code=200 if found["mongo"] == "ok" else 503)


async def words_of_parts(parts: WebParts) -> dict[str, str]:
    """Each part's word, all asked at once."""
    names = list(parts.probes)
    words = await asyncio.gather(*(_ask(name, parts.probes[name]) for name in names))
    return dict(zip(names, words, strict=True))


async def _ask(name: str, probe: Probe) -> str:
    try:
        async with asyncio.timeout(PATIENCE_S):
            await probe()
    except TimeoutError:
        return f"no answer within {PATIENCE_S:g} s"
    except NotWorking as error:
        return str(error)
    except Exception as error:  # every kind of fault of a part is an answer here
        log.debug("the probe of %s failed: %r", name, error)
        return "cannot be reached"
    return "ok"
