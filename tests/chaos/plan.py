"""What goes wrong, when and to whom: derived from the seed alone, so that a failing seed can be run again.

A plan names targets by place (`worker 2`), not by process: whoever plays the part at that moment is hit.
"""

from collections import Counter
from dataclasses import dataclass
from random import Random

LEASE_S = 2.0
"""Execution lease of the chaos workers."""

MEAN_GAP_S = 0.8
QUIET_AT_FIRST_S = 2.0
CRASHING = 0.5
"""Share of restarted processes that are told to die at a boundary."""
LATEST_PASSING = 8
"""They die there at the latest when they pass it for so many times."""
CALLERS = ("Ledger.accept", "Ledger.begin_round", "Instances.raise_priority", "Instances.replay", "Intents.confirm:")
BOTH = ("Ledger.remove", "Ledger.return_hold", "Ledger.mark", "Instances.create", "Instances.supersede", "Inbox.")
UNUSED = ("PermitLimits.", "Instances.release_parked")
SHIFTED = 0.25
"""Share of workers whose clock is wrong."""
LARGEST_SHIFT_S = 12 * 3600


@dataclass(frozen=True)
class Kind:
    """A kind of fault. It lasts between `shortest_s` and `longest_s`; its target is then left alone for `rest_s`."""

    name: str
    role: str
    weight: int
    shortest_s: float = 0.0
    longest_s: float = 0.0
    rest_s: float = 1.5


KINDS = (
    Kind("kill worker", "worker", 30),
    Kind("stop worker", "worker", 4, rest_s=10.0),
    Kind("pause worker", "worker", 16, 1.2 * LEASE_S, 3.5 * LEASE_S),
    Kind("kill producer", "producer", 10),
    Kind("pause producer", "producer", 3, 1.0, 8.0),
    Kind("flush valkey", "valkey", 4),
    Kind("kill valkey", "valkey", 4, 0.1, 5.0, rest_s=3.0),
    Kind("pause valkey", "valkey", 4, 0.5, 4.0, rest_s=3.0),
    Kind("kill mongo", "mongo", 4, 0.0, 3.0, rest_s=6.0),
    Kind("pause mongo", "mongo", 5, 0.3, 2.5, rest_s=3.0),
    Kind("delay mongo", "mongo", 12, 0.9, 3.0),
)


@dataclass(frozen=True)
class Fault:
    """One fault: `at_s` after the beginning, for `for_s` seconds."""

    at_s: float
    kind: str
    role: str
    index: int
    for_s: float

    def __str__(self) -> str:
        lasting = f" for {self.for_s:.1f} s" if self.for_s else ""
        return f"{self.at_s:7.1f} s  {self.kind} {self.index}{lasting}"


@dataclass(frozen=True)
class Life:
    """One process that plays a part: its name, where it is to die by itself, and how wrong its clock is."""

    name: str
    crash_at: str = ""
    passing: int = 0
    clock_shift_s: int = 0


@dataclass(frozen=True)
class Plan:
    """The faults of a run in their order, and what the processes are like."""

    seed: int
    faults: tuple[Fault, ...]
    points: dict[str, list[str]]  # role → boundaries it passes

    def life(self, role: str, index: int, number: int, *, calm: bool = False) -> Life:
        """The `number`-th process (from 1) in a part; a calm one does not die by itself."""
        name = f"{role}{index}.{number}"
        random = Random(f"{self.seed}/{name}")
        crashes = random.random() < CRASHING and number > 1
        crash_at, passing = random.choice(self.points[role]), random.randint(1, LATEST_PASSING)
        wrong = random.random() < SHIFTED and role == "worker"
        shift_s = random.randint(-LARGEST_SHIFT_S, LARGEST_SHIFT_S) if wrong else 0
        return Life(name, crash_at if crashes and not calm else "", passing, shift_s)

    def counts(self) -> Counter[str]:
        """How many faults there are of each kind."""
        return Counter(fault.kind for fault in self.faults)


def drawn(seed: int, seconds: float, parts: dict[str, int], points: list[str]) -> Plan:
    """The plan for `seconds` of faults on so many processes of each role: each kind once, then all by their weights."""
    random = Random(f"{seed}/faults")
    faults: list[Fault] = []
    free_at: dict[tuple[str, int], float] = {}
    once = random.sample(KINDS, len(KINDS))
    now_s = QUIET_AT_FIRST_S
    while now_s < seconds:
        kind = once[-1] if once else random.choices(KINDS, [kind.weight for kind in KINDS])[0]
        index = random.randint(1, parts[kind.role])
        for_s = random.uniform(kind.shortest_s, kind.longest_s)
        if free_at.get((kind.role, index), 0.0) <= now_s and now_s + for_s < seconds:
            faults.append(Fault(now_s, kind.name, kind.role, index, for_s))
            free_at[(kind.role, index)] = now_s + for_s + kind.rest_s
            once = once[:-1]
        now_s += random.expovariate(1 / MEAN_GAP_S)
    return Plan(seed, tuple(faults), _by_role(points))


def _by_role(points: list[str]) -> dict[str, list[str]]:
    used = [point for point in points if not point.startswith(UNUSED)]
    return {
        "producer": [point for point in used if point.startswith((*CALLERS, *BOTH))],
        "worker": [point for point in used if not point.startswith(CALLERS)],
    }
