"""Cheap questions to the parts the web depends on. Each raises when its part does not work."""

import httpx
import msgspec
from redis.asyncio import Redis

from app.web.parts import Probe
from kernel.driver import Database


class NotWorking(Exception):
    """The part answered, but it does not work; says why."""


class _Refusal(msgspec.Struct):
    reason: str | None = None


def mongo_probe(database: Database) -> Probe:
    """Whether MongoDB answers a ping."""

    async def ask() -> None:
        await database.command("ping")

    return ask


def redis_probe(redis: Redis) -> Probe:
    """Whether Redis answers a ping."""

    async def ask() -> None:
        await redis.ping()

    return ask


def http_probe(client: httpx.AsyncClient, url: str, token: str = "") -> Probe:
    """Whether a GET of `url` succeeds; if not, the `reason` it gives. An empty address is a part that is not set up."""
    headers = {"authorization": f"Bearer {token}"} if token else {}

    async def ask() -> None:
        if not url:
            raise NotWorking("not set up")
        response = await client.get(url, headers=headers)
        if not response.is_success:
            raise NotWorking(_reason(response) or f"answered {response.status_code}")

    return ask


def _reason(response: httpx.Response) -> str | None:
    try:
        return msgspec.json.decode(response.content, type=_Refusal).reason
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
