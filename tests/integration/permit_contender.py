"""One process of `test_permits`: tasks that take and give back permits of one resource, and log what they were granted.

Prints a JSON list of grants: `granted_at_ms` by the server's clock, and the time it was held for certain, from the
answer to just before the release, by the machine's monotonic clock.
"""

import asyncio
import json
import random
import sys
from time import monotonic

from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.permits import Grant, Limits, Permits


async def insist(permits: Permits, limits: Limits, owner: str, token: str) -> Grant:
    """Ask far more often than a refusal advises, as a worst case."""
    while True:
        answer = await permits.acquire("asr", owner, token, limits)
        if isinstance(answer, Grant):
            return answer
        await asyncio.sleep(random.uniform(0.001, 0.02))


async def contend(permits: Permits, limits: Limits, owner: str, rounds: int) -> list[dict[str, float]]:
    log: list[dict[str, float]] = []
    for number in range(rounds):
        token = f"{owner}-{number}"
        grant = await insist(permits, limits, owner, token)
        since = monotonic()
        await asyncio.sleep(random.uniform(0.0, 0.15))
        log.append({"granted_at_ms": grant.granted_at_ms, "since": since, "until": monotonic()})
        await permits.release("asr", owner, token)
    return log


async def main(url: str, prefix: str, name: str, tasks: int, rounds: int, limits: Limits) -> None:
    redis = Redis.from_url(url)
    permits = Permits(redis, prefix, Clock(), lease_s=30)
    logs = await asyncio.gather(*(contend(permits, limits, f"{name}.{n}", rounds) for n in range(tasks)))
    print(json.dumps([grant for log in logs for grant in log]))
    await redis.aclose()


if __name__ == "__main__":
    url, prefix, name, tasks, rounds, concurrency, rate = sys.argv[1:]
    asyncio.run(main(url, prefix, name, int(tasks), int(rounds), Limits(int(concurrency), float(rate))))
