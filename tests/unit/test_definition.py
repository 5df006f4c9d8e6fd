"""Plans, fingerprints and what may run: pure."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kernel import Backoff, InvalidDefinition, Plan, RetryAfter, StaleRound, Step, UnknownStep, WorkflowCanceled
from kernel.definition import MAX_WAVE, check
from kernel.errors import Fatal
from kernel.failures import described, verdict
from kernel.model import FAR_FUTURE, NEXT, TERMINAL, Instance, Status, StepState, StepStatus, Wait, workflow_id_of
from kernel.ready import all_done, open_steps, ready_steps

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def instance_of(plan: Plan, **steps: StepState) -> Instance:
    return Instance(
        workflow_id="wf",
        biz_key="k",
        type=plan.type,
        definition_fingerprint=plan.fingerprint,
        status=Status.RUNNING,
        round=1,
        business_priority=1,
        input={},
        step_order=list(plan.steps),
        steps={name: steps.get(name, StepState()) for name in plan.steps},
        output={},
        claimable_time=NOW,
        created_at=NOW,
        updated_at=NOW,
    )


async def nothing(_context: object) -> None:
    return None


def test_the_fingerprint_covers_type_names_order_and_dependencies_and_no_ambiguity() -> None:
    prints = [
        Plan("t", ("a", "b")).fingerprint,
        Plan("u", ("a", "b")).fingerprint,
        Plan("t", ("b", "a")).fingerprint,
        Plan("t", ("ab",)).fingerprint,
        Plan("ta", ("b",)).fingerprint,
        Plan("t", ("a", "b"), {"b": ()}).fingerprint,
    ]
    assert len(set(prints)) == len(prints)
    assert Plan("t", ("a", "b")).fingerprint == Plan("t", ("a", "b"), {"b": ("a",)}).fingerprint
    one = Plan("t", ("a", "b", "c"), {"c": ("a", "b")}).fingerprint
    assert one == Plan("t", ("a", "b", "c"), {"c": ("b", "a")}).fingerprint


@pytest.mark.parametrize(
    ("steps", "depends_on", "said"),
    [
        ((), {}, "0 steps"),
        (("a", "a"), {}, "twice"),
        (("A",), {}, "step name 'A'"),
        (("a", "b"), {"a": ("b",)}, "depends on b"),
        (tuple(f"s{n}" for n in range(33)), {}, "33 steps"),
    ],
)
def test_a_plan_that_could_not_run_is_refused_with_the_reason(steps, depends_on, said) -> None:
    with pytest.raises(InvalidDefinition, match=said):
        check(Plan("t", steps, depends_on))


def test_what_is_repeated_from_a_step_is_all_that_depends_on_it() -> None:
    assert Plan("t", ("a", "b", "c")).from_step("b") == {"b", "c"}
    wave = Plan("t", ("a", "b", "c", "d"), {"b": (), "d": ("a", "b")})
    assert wave.from_step("b") == {"b", "c", "d"}
    assert wave.from_step("d") == {"d"}
    with pytest.raises(UnknownStep, match="no step 'e'; there are: a, b, c"):
        Plan("t", ("a", "b", "c")).from_step("e")


def test_a_linear_flow_is_the_wave_of_one() -> None:
    plan = Plan("t", ("a", "b"))
    assert ready_steps(instance_of(plan), plan, NOW) == ["a"]
    done = StepState(status=StepStatus.COMPLETED)
    assert ready_steps(instance_of(plan, a=done), plan, NOW) == ["b"]
    assert ready_steps(instance_of(plan, a=done, b=done), plan, NOW) == []
    assert all_done(instance_of(plan, a=done, b=StepState(status=StepStatus.SKIPPED)))


def test_running_is_ready_again_waiting_and_not_yet_due_are_not() -> None:
    plan = Plan("t", ("a", "b", "c"), {"b": (), "c": ()})
    found = instance_of(
        plan,
        a=StepState(status=StepStatus.RUNNING, attempt=1),
        b=StepState(status=StepStatus.WAITING, wait=Wait("timer"), due=NOW),
        c=StepState(due=NOW + timedelta(seconds=1)),
    )
    assert ready_steps(found, plan, NOW) == ["a"]
    assert open_steps(found, plan) == ["a", "b", "c"]


def test_a_wave_has_at_most_eight_steps() -> None:
    names = tuple(f"s{n}" for n in range(12))
    plan = Plan("t", names, dict.fromkeys(names, ()))
    assert len(ready_steps(instance_of(plan), plan, NOW)) == MAX_WAVE


def test_what_follows_from_an_error() -> None:
    stop = Step("a", nothing, max_retry=1, backoff=Backoff(first_s=2.0))
    skip = Step("a", nothing, on_failed="skip")
    assert verdict(stop, 1, ValueError(), 0.0).act == "retry"
    assert verdict(stop, 1, ValueError(), 0.0).delay_s == 2.0
    assert verdict(stop, 2, ValueError(), 0.0).act == "fail"
    assert verdict(stop, 1, Fatal("no"), 0.0).act == "fail"
    assert verdict(stop, 1, StaleRound(), 0.0).act == "fail"
    assert verdict(stop, 1, WorkflowCanceled(), 0.0).act == "cancel"
    assert verdict(stop, 1, RetryAfter(7.0), 1.0).delay_s == 7.0
    assert verdict(skip, 1, ValueError(), 0.0).act == "skip"


def test_backoff_doubles_to_its_longest_and_spreads() -> None:
    backoff = Backoff()
    assert [backoff.delay_s(n, 0.0) for n in (1, 2, 3, 10)] == [1.0, 2.0, 4.0, 60.0]
    assert backoff.delay_s(1, 1.0) == pytest.approx(1.2)
    assert backoff.delay_s(1, -1.0) == pytest.approx(0.8)


def test_errors_are_stored_as_short_text() -> None:
    assert described(ValueError("x" * 9000)) == ("ValueError: " + "x" * 9000)[:2000]
    assert described(Fatal("the stream is gone")) == "the stream is gone"
    assert described(KeyError()) == "KeyError"


def test_terminal_states_lead_nowhere_but_for_a_replay() -> None:
    assert {status for status in Status if not NEXT[status]} == TERMINAL - {Status.FAILED}
    assert NEXT[Status.FAILED] == {Status.RUNNING}


def test_an_instance_reads_back_what_a_newer_version_added() -> None:
    document = msgspec.to_builtins(instance_of(Plan("t", ("a",))), builtin_types=(datetime,))
    document["of_a_later_version"] = 1
    assert msgspec.convert(document, Instance).claimable_time == NOW
    assert NOW < FAR_FUTURE


def test_the_workflow_id_is_the_hash_of_its_biz_key() -> None:
    assert workflow_id_of("summary:1") == workflow_id_of("summary:1")
    assert workflow_id_of("summary:1") != workflow_id_of("summary:2")
    assert workflow_id_of("summary:1").startswith("wf_")
