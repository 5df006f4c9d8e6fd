"""The figures as one table, ours beside the peers', and the goals they are held against."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Found = dict[str, dict[str, Any]]  # engine: its figures

ROWS = (
    ("W1a workflows/s, all accepted first", "w1a_per_s", 1),
    ("W1a workflows/s, 32 callers", "w1a_closed32_per_s", 1),
    ("W1a server + worker CPU ms per workflow", "w1a_cpu_ms", 1),
    ("W1a the same, 32 callers", "w1a_closed32_cpu_ms", 1),
    ("W1b p50 ms", "w1b_p50_ms", 1),
    ("W1b p95 ms", "w1b_p95_ms", 1),
    ("W1c durable accepts/s", "w1c_per_s", 0),
    ("W1d seconds after kill -9", "w1d_recovery_s", 1),
    ("W1d the same without a kill", "w1d_unharmed_s", 1),
    ("W2 seconds beyond the sleep", "w2_beyond_s", 2),
    ("W2 peak memory MB, worker", "w2_peak_mb.worker", 0),
    ("W2 peak memory MB, servers", "w2_peak_mb.*", 0),
    ("W3 seconds for all signalled", "w3_s", 2),
)


@dataclass(frozen=True)
class Goal:
    """What is wished for: `of` gives the present value and the bound, from ours, all, and the lease in seconds."""

    name: str
    of: Callable[[dict[str, Any], Found, float], tuple[float, float]]
    at_least: bool = False


def _best(figures: dict[str, Any], *names: str) -> float:
    return max(figures[name] for name in names)


def _rate(figures: dict[str, Any]) -> float:
    return _best(figures, "w1a_per_s", "w1a_closed32_per_s")


GOALS = (
    Goal("workflows/s, at least 2 × Restate", lambda own, all, _: (_rate(own), 2 * _rate(all["restate"])), True),
    Goal("workflows/s, at least 8 × DBOS", lambda own, all, _: (_rate(own), 8 * _rate(all["dbos"])), True),
    Goal(
        "CPU ms per workflow, at most 0.7 × Restate",
        lambda own, all, _: (own["w1a_cpu_ms"], 0.7 * all["restate"]["w1a_cpu_ms"]),
    ),
    Goal("p50 ms, at most 0.8 × Restate", lambda own, all, _: (own["w1b_p50_ms"], 0.8 * all["restate"]["w1b_p50_ms"])),
    Goal(
        "seconds for 500 signals, at most 0.35 × Absurd",
        lambda own, all, _: (own["w3_s"], 0.35 * all["absurd"]["w3_s"]),
    ),
    Goal(
        "accepts/s, at least 1.5 × Absurd",
        lambda own, all, _: (own["w1c_per_s"], 1.5 * all["absurd"]["w1c_per_s"]),
        True,
    ),
    Goal(
        "seconds that a kill costs, at most one lease + 1",
        lambda own, _, lease_s: (own["w1d_recovery_s"] - own["w1d_unharmed_s"], lease_s + 1),
    ),
    Goal(
        "seconds beyond a sleep, at most 0.5 × Restate",
        lambda own, all, _: (own["w2_beyond_s"], 0.5 * all["restate"]["w2_beyond_s"]),
    ),
    Goal("seconds for the fan-out, at most 30", lambda own, *_: (own["fanout_s"], 30.0)),
    Goal(
        "worker's memory in the fan-out, at most 1.2 × before it",
        lambda own, *_: (own["fanout_peak_mb"]["worker"], 1.2 * own["fanout_before_mb"]["worker"]),
    ),
    Goal("cores in an idle minute, at most 0.01", lambda own, *_: (own["idle_cores"], 0.01)),
)


def table(found: Found) -> list[str]:
    """One row for each figure; behind each peer's its ratio: ours divided by theirs."""
    names = list(found)
    peers = [name for name in names if name != "baton"]
    lines = [f"| | {' | '.join(names)} | {' | '.join(f'baton / {peer}' for peer in peers)} |"]
    lines.append("|---|" + "---:|" * (len(names) + len(peers)))
    for label, key, digits in ROWS:
        values = {name: value_of(figures, key) for name, figures in found.items()}
        ratios = [_ratio(values.get("baton"), values[peer]) for peer in peers]
        lines.append(f"| {label} | {' | '.join([*(_shown(one, digits) for one in values.values()), *ratios])} |")
    return lines


def value_of(figures: dict[str, Any], key: str) -> float | None:
    """A figure, or one of its parts: `peak.worker`, or `peak.*` for the sum of all the others."""
    name, _, part = key.partition(".")
    value = figures.get(name)
    if part and value:
        return sum(v for k, v in value.items() if k != "worker") if part == "*" else value.get(part)
    return value


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _ratio(own: float | None, other: float | None) -> str:
    return "–" if own is None or not other else f"{own / other:.2f}"


def goals(found: Found, lease_s: float) -> list[str]:
    """Each goal that can be judged: what was measured, the bound, and whether it is met."""
    lines = ["| goal | measured | bound | |", "|---|---:|---:|---|"]
    for goal in GOALS:
        try:
            value, bound = goal.of(found["baton"], found, lease_s)
        except (KeyError, TypeError):
            continue
        met = value >= bound if goal.at_least else value <= bound
        by = value / bound if bound else 0.0
        lines.append(
            f"| {goal.name} | {value:,.3g} | {bound:,.3g} | {'met' if met else 'missed'}, {by:.2f} of the bound |"
        )
    return lines


def ours(figures: dict[str, Any]) -> list[str]:
    """What only we are measured by."""
    lines = []
    if "many_signals_s" in figures:
        lines.append(f"many signals: {figures['many_signals_s']:.1f} s")
    if "fanout_s" in figures:
        before, peak = figures["fanout_before_mb"], figures["fanout_peak_mb"]
        memory = ", ".join(f"{name} {before[name]:.0f} → {peak[name]:.0f}" for name in peak)
        lines.append(f"fan-out to all waiting: {figures['fanout_s']:.1f} s; memory before → at most, MB: {memory}")
        cores = ", ".join(f"{name} {used:.2%}" for name, used in figures["idle_cores_by_process"].items())
        lines.append(f"idle with all waiting: {figures['idle_cores']:.2%} of a core ({cores})")
    for what, counted in figures.get("writes", {}).items():
        shown = (
            counted if isinstance(counted, float) else ", ".join(f"{name} {times:g}" for name, times in counted.items())
        )
        lines.append(f"one linear4 workflow, {what}: {shown}")
    return lines
