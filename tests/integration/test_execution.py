"""The engine on real MongoDB and Redis: every shape reaches its end, and what is stored says how."""

import re
from functools import partial
from time import monotonic

import pytest

from kernel import (
    Definition,
    IdentityMismatch,
    Limits,
    Outcome,
    Sleep,
    Status,
    Step,
    StepContext,
    StepStatus,
    TooLarge,
    UnknownStep,
    workflow_id_of,
)
from kernel.errors import StoreUnavailable
from kernel.permits import Limits as PermitLimits
from kernel.testing import Fleet, crash_at, fail_at
from tests.kernel_kit import Kit
from tests.shapes import ObjectInput, ready_signal


async def test_a_linear_workflow_runs_its_steps_once_and_completes(kit: Kit) -> None:
    await kit.start("linear")
    ended = await kit.run("linear")
    assert ended.status is Status.COMPLETED
    assert kit.business.entered == ["one", "two", "three", "four"]
    assert ended.output == {name: {"by": name} for name in ("one", "two", "three", "four")}
    assert (await kit.business.get("a"))["state"] == "completed"
    assert ended.claim_token == ""


async def test_without_a_finalizer_the_last_completion_is_the_end(kit: Kit) -> None:
    await kit.start("bare")
    with crash_at("nowhere") as death:
        ended = await kit.run("bare")
    assert (ended.status, ended.claim_token, ended.finished_at is not None) == (Status.COMPLETED, "", True)
    assert ended.output == {"one": {"by": "one"}, "two": {"by": "two"}}
    assert death.passed.count("Store.complete_step:after") == 2
    assert "Store.complete_workflow:after" not in death.passed


async def test_starting_again_returns_the_same_instance_and_activates_nothing(kit: Kit) -> None:
    first = await kit.start("linear")
    again = await kit.start("linear")
    assert (first.activated, again.activated) == (True, False)
    assert first.instance.workflow_id == again.instance.workflow_id
    await kit.run("linear")
    late = await kit.start("linear", round=1)
    assert late.instance.status is Status.COMPLETED
    assert not late.activated


async def test_retries_count_failures_and_attempts(kit: Kit) -> None:
    await kit.start("retry")
    ended = await kit.run("retry")
    one = ended.steps["one"]
    assert (ended.status, one.attempt, one.failures) == (Status.COMPLETED, 3, 2)


async def test_a_fatal_error_is_not_retried_and_fails_object_and_workflow(kit: Kit) -> None:
    await kit.start("failing")
    ended = await kit.run("failing")
    assert ended.status is Status.FAILED
    assert ended.steps["two"].attempt == 1
    assert ended.error == "two: it cannot be done"
    assert (await kit.business.get("a"))["state"] == "failed"


async def test_a_newer_round_replays_only_what_had_not_completed(kit: Kit) -> None:
    await kit.start("replay")
    assert (await kit.run("replay")).status is Status.FAILED
    late = await kit.start("replay", round=1)
    assert not late.activated, "a late dispatcher must not restart a finished job"
    again = await kit.start("replay", round=2)
    assert again.activated
    assert again.instance.run == 2
    ended = await kit.run("replay")
    assert ended.status is Status.COMPLETED
    assert kit.business.entered == ["one", "two", "two", "three"]
    assert (await kit.business.get("a"))["state"] == "completed"


async def test_a_newer_round_may_begin_again_from_an_earlier_step(kit: Kit) -> None:
    await kit.start("replay")
    await kit.run("replay")
    values = await kit.business.open("a", 2)
    start = partial(kit.parts.publisher.start_or_resume, "replay", "replay:a", values, round=2, priority=1)
    with pytest.raises(UnknownStep):
        await start(from_step="four")
    assert (await start(from_step="one")).instance.steps["one"].attempt == 0
    assert (await kit.run("replay")).status is Status.COMPLETED
    assert kit.business.entered == ["one", "two", "one", "two", "three"]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"text": "x" * 70_000}, r"output of step only has 700\d\d bytes; at most 65536"),
        (Sleep(1.0, {"text": "x" * 17_000}), r"checkpoint of step only has 170\d\d bytes; at most 16384"),
    ],
)
async def test_what_is_too_large_to_store_fails_the_step_and_says_how_large_it_is(
    kit: Kit, result: Outcome, said: str
) -> None:
    async def large(_: StepContext) -> Outcome:
        return result

    definition = Definition("large", (Step("only", large),))
    kit.parts.publisher.register(definition.plan)
    started = await kit.parts.publisher.start_or_resume("large", "large:a", ObjectInput("a", 1), round=1, priority=1)
    ended = await Fleet(kit.parts, [definition], kit.projections).run(started.instance.workflow_id)
    assert ended.status is Status.FAILED
    assert re.search(said, ended.error or "")


async def test_a_cancel_from_inside_ends_without_a_finalizer(kit: Kit) -> None:
    await kit.start("cancel")
    ended = await kit.run("cancel")
    assert ended.status is Status.CANCELED
    assert ended.steps["two"].status is StepStatus.SKIPPED
    assert (await kit.business.get("a"))["state"] == "working"


async def test_a_skippable_step_that_fails_is_skipped(kit: Kit) -> None:
    await kit.start("skip")
    ended = await kit.run("skip")
    assert ended.status is Status.COMPLETED
    assert ended.steps["one"].status is StepStatus.SKIPPED


async def test_polls_are_no_attempts_and_carry_their_checkpoint(kit: Kit) -> None:
    await kit.start("sleep")
    ended = await kit.run("sleep")
    one = ended.steps["one"]
    assert (ended.status, one.attempt, one.waits) == (Status.COMPLETED, 1, 3)
    assert ended.output["one"] == {"polls": 3}


async def test_a_yield_goes_on_from_its_cursor(kit: Kit) -> None:
    await kit.start("yield")
    ended = await kit.run("yield")
    assert ended.output["one"] == {"pages": 4}
    assert kit.business.entered == ["one"] * 4 + ["two"]


async def test_parallel_steps_commit_for_themselves_and_join(kit: Kit) -> None:
    await kit.start("wave")
    ended = await kit.run("wave")
    assert ended.status is Status.COMPLETED
    assert kit.business.entered.count("left") == 1
    assert kit.business.entered.count("right") == 4
    assert kit.business.entered.count("below") == 3
    assert kit.business.entered[-1] == "join"


async def test_an_early_signal_waits_for_its_waiter(kit: Kit) -> None:
    await kit.start("signal")
    assert await kit.parts.publisher.deliver_signal(ready_signal("a", "s1"))
    await kit.fleet.claim_and_run(workflow_id_of("signal:a"))
    found = await kit.parts.instances.get(workflow_id_of("signal:a"))
    assert found.steps["one"].status is StepStatus.PENDING
    assert found.steps["one"].resume.signal_id == "s1"


async def test_of_many_signals_each_is_stored_once_and_its_caller_told(kit: Kit) -> None:
    await kit.start("signal")
    await kit.fleet.claim_and_run(workflow_id_of("signal:a"))
    signals = [ready_signal("a", "s1"), ready_signal("a", "s1"), ready_signal("nobody", "s2")]
    assert await kit.parts.publisher.deliver_signals(signals) == [True, False, True]
    assert await kit.parts.publisher.deliver_signals(signals) == [False, False, False]
    found = await kit.parts.instances.get(workflow_id_of("signal:a"))
    assert found.steps["one"].resume.signal_id == "s1"


async def test_a_stored_signal_counts_as_delivered_even_if_nobody_can_be_woken_now(kit: Kit) -> None:
    await kit.start("signal")
    await kit.fleet.claim_and_run(workflow_id_of("signal:a"))
    with fail_at("Instances.activate:before", StoreUnavailable("away")):
        assert await kit.parts.publisher.deliver_signal(ready_signal("a", "s1"))
    await kit.parts.publisher.match_signals([workflow_id_of("signal:a")])
    found = await kit.parts.instances.get(workflow_id_of("signal:a"))
    assert found.steps["one"].resume.signal_id == "s1"


async def test_a_claim_that_has_ended_needs_no_mongodb_to_say_so(kit: Kit) -> None:
    await kit.start("signal")
    await kit.parts.publisher.deliver_signal(ready_signal("a", "s1"))
    with fail_at("Inbox.mark_matched:before", StoreUnavailable("away")):
        assert await kit.fleet.claim_and_run(workflow_id_of("signal:a"))
    await kit.business.db["objects"].update_one({"_id": "a"}, {"$set": {"ready": True}})
    assert (await kit.run("signal")).output["one"] == {"woken_by": "signal"}


async def test_a_late_signal_wakes_once_and_an_old_generation_never(kit: Kit) -> None:
    await kit.start("signal")
    await kit.fleet.claim_and_run(workflow_id_of("signal:a"))
    await kit.parts.publisher.deliver_signal(ready_signal("a", "old", generation=0))
    waiting = await kit.parts.instances.get(workflow_id_of("signal:a"))
    assert waiting.status is Status.WAITING
    await kit.business.db["objects"].update_one({"_id": "a"}, {"$set": {"ready": True}})
    assert await kit.parts.publisher.deliver_signal(ready_signal("a", "s1"))
    assert not await kit.parts.publisher.deliver_signal(ready_signal("a", "s1"))
    ended = await kit.run("signal")
    assert ended.status is Status.COMPLETED
    assert ended.output["one"] == {"woken_by": "signal"}
    assert kit.business.entered == ["one", "one", "two"]


async def test_a_poll_fallback_is_a_check_not_a_timeout(kit: Kit) -> None:
    await kit.start("signal")
    workflow_id = workflow_id_of("signal:a")
    await kit.fleet.claim_and_run(workflow_id)
    await kit.fleet.skip_to_due(workflow_id)
    await kit.fleet.claim_and_run(workflow_id)
    assert (await kit.parts.instances.get(workflow_id)).status is Status.WAITING
    await kit.business.db["objects"].update_one({"_id": "a"}, {"$set": {"ready": True}})
    assert (await kit.run("signal")).output["one"] == {"woken_by": "poll"}


async def test_a_supersede_cancels_from_outside_and_only_once(kit: Kit) -> None:
    started = await kit.start("signal")
    workflow_id = started.instance.workflow_id
    await kit.fleet.claim_and_run(workflow_id)
    assert await kit.parts.publisher.supersede(workflow_id)
    assert not await kit.parts.publisher.supersede(workflow_id)
    await kit.parts.publisher.deliver_signal(ready_signal("a", "late"))
    assert (await kit.parts.instances.get(workflow_id)).status is Status.CANCELED


async def test_a_worker_that_returns_late_changes_nothing(kit: Kit) -> None:
    started = await kit.start("linear")
    late = await kit.fleet.claim(started.instance.workflow_id)
    ended = await kit.run("linear")
    late.claim._deadline = monotonic() - 1  # it slept through its lease: its own clock ran on
    await late.run()
    assert await kit.parts.instances.get(started.instance.workflow_id) == ended
    assert kit.business.entered == ["one", "two", "three", "four"]


async def test_a_refused_permit_is_neither_failure_nor_attempt(kit: Kit) -> None:
    await kit.start("permit")
    taken = await kit.parts.permits.acquire("narrow", "somebody/else", "token", PermitLimits(1, 0))
    assert taken
    workflow_id = workflow_id_of("permit:a")
    await kit.fleet.claim_and_run(workflow_id)
    step = (await kit.parts.instances.get(workflow_id)).steps["one"]
    assert (step.status, step.attempt, step.failures, step.traffic_waits) == (StepStatus.PENDING, 0, 0, 1)
    assert step.traffic_reason == "limit"
    await kit.parts.permits.release("narrow", "somebody/else", "token")
    assert (await kit.run("permit")).status is Status.COMPLETED


async def test_limits_changed_by_an_operator_hold_at_the_next_acquire(kit: Kit) -> None:
    await kit.parts.limits.change("narrow", Limits(3, 0.5))
    assert await kit.parts.limits.of("narrow") == Limits(3, 0.5)


async def test_priority_only_rises(kit: Kit) -> None:
    await kit.start("signal", priority=3)
    assert (await kit.start("signal", priority=1)).instance.business_priority == 1
    assert (await kit.start("signal", priority=2)).instance.business_priority == 1


async def test_an_input_over_its_limit_is_refused_with_both_sizes(kit: Kit) -> None:
    with pytest.raises(TooLarge, match=r"20\d\d\d bytes; at most 16384"):
        await kit.parts.publisher.start_or_resume(
            "linear", "linear:big", ObjectInput("x" * 20_000, 1), round=1, priority=1
        )


async def test_an_instance_under_another_identity_is_an_error_with_a_name(kit: Kit) -> None:
    await kit.start("linear")
    with pytest.raises(IdentityMismatch):
        await kit.parts.publisher.start_or_resume("retry", "linear:a", ObjectInput("a", 1), round=1, priority=1)


async def test_attempts_and_snapshots_show_what_happened(kit: Kit) -> None:
    await kit.start("retry")
    ended = await kit.run("retry")
    attempts = await kit.projections.attempts(ended.workflow_id)
    assert [(a["step"], a["attempt"], a["status"]) for a in attempts] == [
        ("one", 1, "failed"),
        ("one", 2, "failed"),
        ("one", 3, "completed"),
        ("two", 1, "completed"),
    ]
    snapshot = await kit.projections.snapshot(ended.workflow_id)
    assert snapshot["status"] == "completed"
    assert snapshot["revision"] == ended.revision


async def test_a_dead_workers_attempt_is_shown_as_abandoned(kit: Kit) -> None:
    started = await kit.start("linear")
    dead = await kit.fleet.claim(started.instance.workflow_id)
    assert dead.claim.instance.steps["one"].attempt == 1
    ended = await kit.run("linear")
    attempts = await kit.projections.attempts(ended.workflow_id)
    assert [(a["step"], a["attempt"], a["status"]) for a in attempts[:2]] == [
        ("one", 1, "abandoned"),
        ("one", 2, "completed"),
    ]
