"""Whether services that run elsewhere can be reached: each function gives the fault in words, empty for none."""

import inspect
import re

REACH_TIMEOUT_S = 5.0


async def mongo_fault(url: str) -> str:
    """Fault of a MongoDB: no answer, or no replica set (majority writes need one)."""
    from kernel.driver import open_mongo

    try:
        client = open_mongo(url, timeout_s=REACH_TIMEOUT_S)
        try:
            hello = await client.admin.command("hello")
        finally:
            closing = client.close()
            if inspect.isawaitable(closing):
                await closing
    except Exception as error:  # whatever the driver raises, down to a malformed address, is the answer
        return _short(error)
    return "" if "setName" in hello else "it is not a replica set; start it with --replSet and initiate the set"


async def redis_fault(url: str) -> str:
    """Fault of a Redis or Valkey."""
    from redis.asyncio import Redis

    try:
        async with Redis.from_url(
            url, socket_timeout=REACH_TIMEOUT_S, socket_connect_timeout=REACH_TIMEOUT_S
        ) as client:
            await client.ping()
    except Exception as error:  # as above
        return _short(error)
    return ""


async def http_fault(url: str, key: str = "") -> str:
    """Fault of an HTTP service that should answer a GET of `url` with 200."""
    import httpx

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with httpx.AsyncClient(timeout=REACH_TIMEOUT_S) as client:
            response = await client.get(url, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return _short(error)
    return "" if response.is_success else f"GET {url} answered {response.status_code} {response.reason_phrase}"


def without_password(url: str) -> str:
    """The address as it may be shown."""
    return re.sub(r"//[^/@]*@", "//…@", url)


def _short(error: Exception) -> str:
    text = without_password(str(error)).splitlines() or [""]
    return f"{type(error).__name__}: {text[0][:300]}"
