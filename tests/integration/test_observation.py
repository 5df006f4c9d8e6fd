"""The observers' side: bounded, in order of revision, never in the way."""

from datetime import timedelta

import msgspec

from kernel import StoreUnavailable
from kernel.observation import AttemptChange, Observer
from kernel.projections import REMEMBERED_S, SILENT_S, Projections
from kernel.repairs import Repairs
from tests.kernel_kit import Kit


class Faulty(Projections):
    """The real projections behind a switch that makes MongoDB unreachable."""

    away = False

    async def write(self, events) -> None:
        if self.away:
            raise StoreUnavailable
        await super().write(events)


class Unheard(Projections):
    """Projections that are written while their answers are lost."""

    answers = False

    async def write(self, events):
        await super().write(events)
        if not self.answers:
            raise StoreUnavailable("nobody heard it")


async def test_a_full_queue_refuses_and_counts_and_keeps_what_it_took(kit: Kit) -> None:
    started = await kit.start("linear")
    observer = Observer(kit.projections, "A", limit=3)
    for _ in range(5):
        observer.moved(started.instance)
    assert (observer.depth, observer.dropped) == (3, 2)


async def test_a_late_event_does_not_turn_a_view_back(kit: Kit) -> None:
    await kit.start("linear")
    early = await kit.parts.instances.get((await kit.start("linear")).instance.workflow_id)
    ended = await kit.run("linear")
    observer = Observer(kit.projections, "late")
    observer.moved(early)
    await observer.flush()
    assert (await kit.projections.snapshot(ended.workflow_id))["status"] == "completed"


async def test_a_transient_fault_keeps_the_batch(kit: Kit, db, clock) -> None:
    started = await kit.start("linear")
    faulty = Faulty(db, clock)
    observer = Observer(faulty, "A")
    observer.moved(started.instance)
    faulty.away = True
    await observer.flush()
    assert observer.depth == 1
    faulty.away = False
    await observer.flush()
    assert observer.depth == 0
    assert await kit.projections.snapshot(started.instance.workflow_id) is not None


async def test_times_of_a_batch_that_was_written_unheard_are_added_once(kit: Kit, db, clock) -> None:
    fresh = (await kit.start("linear")).instance
    polls = [msgspec.structs.replace(fresh, revision=10 + number) for number in range(3)]
    unheard = Unheard(db, clock)
    observer = Observer(unheard, "A")
    for poll in polls[:2]:
        observer.suspended(poll, "one", 100)
    await observer.flush()
    observer.suspended(polls[2], "one", 100)
    unheard.answers = True
    await observer.flush()
    (attempt,) = await kit.projections.attempts(fresh.workflow_id)
    assert (attempt["polls"], attempt["activity_ms"], attempt["revision"]) == (3, 300, 12)
    assert observer.depth == 0


async def test_one_record_that_can_never_be_written_is_dropped_alone(kit: Kit) -> None:
    instances = [(await kit.start("linear", f"o{n}")).instance for n in range(5)]
    observer = Observer(kit.projections, "A")
    for place, instance in enumerate(instances):
        observer.moved(instance)
        if place == 2:
            observer._offer(instance, AttemptChange("one", 1, {"output": object()}))
    await observer.flush()
    assert (observer.depth, observer.poisoned) == (0, 1)
    shown = await kit.projections.snapshots(type="linear")
    assert {one["workflow_id"] for one in shown} == {one.workflow_id for one in instances}


async def test_an_ended_workflow_whose_views_were_lost_is_repaired_from_its_instance(kit: Kit) -> None:
    await kit.start("retry")
    ended = await kit.run("retry")
    await kit.business.db["workflow_snapshots"].delete_many({})
    await kit.business.db["workflow_attempts"].delete_many({})
    await kit.projections.repair(ended)
    assert (await kit.projections.snapshot(ended.workflow_id))["status"] == "completed"
    attempts = await kit.projections.attempts(ended.workflow_id)
    assert [(a["step"], a["attempt"], a["status"]) for a in attempts] == [
        ("one", 3, "completed"),
        ("two", 1, "completed"),
    ]


async def test_lists_filter_by_type_status_and_text(kit: Kit) -> None:
    for shape in ("linear", "failing"):
        await kit.start(shape, shape)
        await kit.run(shape, shape)
    assert [s["_id"] for s in await kit.projections.snapshots(status="failed")] == ["failing:failing"]
    assert [s["_id"] for s in await kit.projections.snapshots(q="LINEAR:")] == ["linear:linear"]
    assert [s["_id"] for s in await kit.projections.snapshots(q="cannot be done")] == ["failing:failing"]
    assert {(c["type"], c["status"], c["count"]) for c in await kit.projections.counts()} == {
        ("linear", "completed", 1),
        ("failing", "failed", 1),
    }


async def test_a_view_whose_worker_died_before_writing_it_catches_up(kit: Kit) -> None:
    started = await kit.start("linear")
    observer = Observer(kit.projections, "A")
    observer.moved(started.instance)
    await observer.flush()
    ended = await kit.run_unseen("linear")
    assert (await kit.projections.snapshot(ended.workflow_id))["status"] == "running"
    repairs = Repairs(kit.parts.instances, kit.projections, kit.mutex)
    kit.parts.clock.advance(timedelta(seconds=10))
    assert await repairs.run() == 1
    assert (await kit.projections.snapshot(ended.workflow_id))["status"] == "completed"
    assert await repairs.run() == 0


async def test_a_worker_that_misses_its_beats_is_silent_and_then_forgotten(kit: Kit) -> None:
    await kit.projections.beat("dead", 8, 1, 0, 0)
    assert [(one["_id"], one["silent"]) for one in await kit.projections.workers()] == [("dead", False)]
    kit.parts.clock.advance(timedelta(seconds=SILENT_S + 1))
    await kit.projections.beat("alive", 8, 0, 0, 0)
    found = {one["_id"]: one["silent"] for one in await kit.projections.workers()}
    assert found == {"alive": False, "dead": True}
    kit.parts.clock.advance(timedelta(seconds=REMEMBERED_S))
    assert await kit.projections.workers() == []
