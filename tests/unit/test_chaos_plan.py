"""The chaos run's own arithmetic: its plan repeats, and what it judges by can say no."""

import pytest

from kernel import faults
from tests.chaos import ledger, plan
from tests.chaos.transitions import breaches, id_of_write
from tests.chaos.windows import most_at_once, most_starts

PARTS = {"worker": 4, "producer": 2, "mongo": 1, "valkey": 1}
SEEDS = range(20)


def drawn(seed: int) -> plan.Plan:
    return plan.drawn(seed, 100.0, PARTS, faults.points("kernel", ledger.__name__))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_repeats_its_faults_and_its_processes(seed: int) -> None:
    first, second = drawn(seed), drawn(seed)
    assert first == second
    assert [first.life("worker", 2, n) for n in range(9)] == [second.life("worker", 2, n) for n in range(9)]
    assert first.faults != drawn(seed + 1).faults


@pytest.mark.parametrize("seed", SEEDS)
def test_a_default_run_has_every_kind_of_fault_and_ends_in_time(seed: int) -> None:
    made = drawn(seed)
    assert set(made.counts()) == {kind.name for kind in plan.KINDS}
    assert all(fault.at_s + fault.for_s < 100.0 for fault in made.faults)


def test_every_boundary_has_somebody_who_may_die_there() -> None:
    points = drawn(1).points
    unused = [point for point in faults.points("kernel", ledger.__name__) if point.startswith(plan.UNUSED)]
    assert {*points["worker"], *points["producer"], *unused} == {*faults.points("kernel", ledger.__name__)}
    prefixes = (*plan.CALLERS, *plan.BOTH, *plan.UNUSED)
    assert all(any(point.startswith(prefix) for point in faults.points()) for prefix in prefixes)


def test_places_of_one_owner_count_once_and_excused_moments_do_not() -> None:
    held = [("a", (0, 10)), ("a", (5, 20)), ("b", (15, 30)), ("c", (30, 40))]
    assert most_at_once(held, []) == (2, 15)
    assert most_at_once(held, [(14, 16)]) == (1, 0)


def test_starts_are_counted_in_half_open_windows() -> None:
    assert most_starts([0, 500, 1000, 1400], 1000, [])[0] == 3
    assert most_starts([0, 1000, 2000], 1000, [])[0] == 1


def instance(**changes: object) -> dict:
    step = {"status": "pending", "attempt": 0, "failures": 0}
    base = {"revision": 1, "status": "running", "run": 1, "round": 1, "claim_token": "t1", "claimed_at": 5}
    base |= {"claimable_time": 9, "parked_at": None, "business_priority": 1, "steps": {"one": step}}
    return base | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"claimable_time": 8},
        {"status": "completed"},
        {"revision": 3},
        {"revision": 2, "claim_token": "t2", "claimed_at": 8},
        {"revision": 2, "status": "failed"},
        {"revision": 2, "round": 2},
        {"revision": 2, "steps": {"one": {"status": "completed", "attempt": 0, "failures": 0}}},
    ],
    ids=["shorter lease", "silent", "skipped revision", "claimed early", "failed unannounced", "round", "never begun"],
)
def test_a_write_that_must_not_be_is_seen(changes: dict) -> None:
    assert [*breaches(instance(), instance(**changes))]


def test_each_write_is_told_from_the_others() -> None:
    before = instance(commit="c1")
    assert id_of_write(before, before | {"commit": "c2"}) == "c2"
    assert id_of_write(before, before | {"revision": 2}) == "c1", "the same write once more"
    assert id_of_write(before, before | {"claim_token": "t2"}) == "t2"
    assert id_of_write(before, before | {"claim_token": "", "parked_at": 9}) != "c1"


def test_a_renewal_and_a_take_over_in_time_are_fine() -> None:
    assert [*breaches(instance(), instance(claimable_time=12))] == []
    assert [*breaches(instance(), instance(revision=2, claim_token="t2", claimed_at=9, claimable_time=20))] == []
