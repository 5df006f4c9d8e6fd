"""Dispatch intents in other hands: every conditional write on them is tried by one who comes late, and must miss.

One guard is wrong at a time: another round under the same dispatch token, another token in the same round.
"""

import inspect
from typing import Any

from kernel import faults
from kernel.intents import Intents
from tests.desk import Desk

MINE: dict[str, Any] = {"round": 1, "token": "mine", "lease_s": 30.0, "delay_s": 5.0, "error": "late"}
STATUSES = ("pending", "processing", "dispatched")


def late_writes() -> list[str]:
    """Every marked write on an intent that is made for a round."""
    names = dict.fromkeys(point.partition(":")[0] for point in faults.points("kernel.intents"))
    return [name for name in names if "round" in _parameters(name)]


def _parameters(name: str) -> list[str]:
    return list(inspect.signature(getattr(Intents, name.partition(".")[2])).parameters)


async def changes_nothing(desk: Desk, name: str) -> bool:
    """Whether the late write misses, whatever the status of the intent."""
    await desk.accept("a")
    held = {"claim_token": "mine", "fencing_token": 2}, {"claim_token": "another", "fencing_token": 1}
    wrong = held if "token" in _parameters(name) else held[:1]
    for guards in wrong:
        for status in STATUSES:
            theirs = {f"workflow_dispatch.{key}": value for key, value in {**guards, "status": status}.items()}
            await desk.objects.update_one({"_id": "a"}, {"$set": theirs})
            before = await desk.objects.find_one({"_id": "a"})
            given = [MINE[parameter] for parameter in _parameters(name)[2:]]
            await getattr(desk.intents, name.partition(".")[2])("a", *given)
            if await desk.objects.find_one({"_id": "a"}) != before:
                return False
    return True
