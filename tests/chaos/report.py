"""The figures of a run: for people, and as one line of JSON."""

import json
from collections import Counter
from statistics import median
from typing import Any

from tests.chaos.crew import Crew
from tests.chaos.history import History
from tests.chaos.mayhem import Mayhem
from tests.chaos.verdict import Verdict

SHOWN = 12


async def figures(database: Any, seed: int, crew: Crew, mayhem: Mayhem, history: History) -> dict[str, Any]:
    """Everything that was counted."""
    objects = database["objects"]
    ends = {state: await objects.count_documents({"state": state}) for state in ("completed", "failed", "canceled")}
    died = [
        one.claimed_at.timestamp() - crew.died_at[one.lost_by]
        for one in history.takeovers
        if one.lost_by in crew.died_at
    ]
    after_death = [seconds for seconds in died if seconds > 0]
    submitted = await database["tasks"].find({"submissions": {"$gt": 1}}).to_list(None)
    return {
        "seed": seed,
        "accepted": await objects.count_documents({}),
        **ends,
        "faults": dict(sorted(mayhem.done.items())),
        "processes": dict(sorted(crew.ends.items())),
        "kills": _kills(crew, mayhem),
        "wrong_clocks": crew.wrong_clocks,
        "takeovers": len(history.takeovers),
        "taken_from_the_living": len(history.takeovers) - len(after_death),
        "latest_after_lease_s": round(max((one.late_s for one in history.takeovers), default=0.0), 2),
        "longest_takeover_s": round(max(after_death, default=0.0), 2),
        "median_takeover_s": round(median(after_death), 2) if after_death else 0.0,
        **{name.replace(" ", "_"): count for name, count in sorted(history.counts.items())},
        "tasks_submitted_again": len(submitted),
    }


def _kills(crew: Crew, mayhem: Mayhem) -> int:
    """Processes that ended without a chance to say goodbye, servers included."""
    members = sum(count for how, count in crew.ends.items() if not how.endswith("stopped"))
    return members + mayhem.done["kill mongo"] + mayhem.done["kill valkey"]


def shown(figures: dict[str, Any], verdict: Verdict) -> str:
    """The report for people, ending in a line of JSON."""
    lines = [f"  {name.replace('_', ' '):28} {_text(value)}" for name, value in figures.items()]
    lines += [f"  {'permits ' + resource:28} {said}" for resource, said in verdict.permits.items()]
    for kind in ("lost", "doubled", "stuck", "broken"):
        found = getattr(verdict, kind)
        lines.append(f"  {kind:28} {len(found)}")
        lines += [f"      {one}" for one in found[:SHOWN]]
    counted = {kind: len(getattr(verdict, kind)) for kind in ("lost", "doubled", "stuck", "broken")}
    return "\n".join([*lines, json.dumps({**figures, **counted})])


def _text(value: Any) -> str:
    if isinstance(value, dict | Counter):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return str(value)
