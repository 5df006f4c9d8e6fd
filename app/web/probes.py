"""Cheap questions to the parts the web depends on. Each raises when its part does not work."""

import httpx
from redis.asyncio import Redis

from app.web.parts import Probe
from kernel.driver import Database


class NotWorking(Exception):
    """The part answered, but it does not work; says why."""


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
    """Whether a GET of `url` succeeds. An empty address is a part that is not set up."""
    headers = {"authorization": f"Bearer {token}"} if token else {}

    async def ask() -> None:
        if not url:
            raise NotWorking("not set up")
        response = await client.get(url, headers=headers)
        if not response.is_success:
            raise NotWorking(f"answered {response.status_code}")

    return ask
