"""Publishers and workers must mean the same workflows."""

from typing import Any

import pytest

from activities import plans, stream_fanout, stream_transcript, stream_watch
from activities.summary import definition as summary
from kernel import Definition, Plan

PORTS: Any = None  # a definition keeps its ports for later

DEFINITIONS = [
    (plans.SUMMARY, summary.definition(PORTS)),
    (plans.STREAM_WATCH, stream_watch.definition(PORTS)),
    (plans.STREAM_TRANSCRIPT, stream_transcript.definition(PORTS)),
    (plans.STREAM_FANOUT, stream_fanout.definition(PORTS)),
]


@pytest.mark.parametrize(("plan", "definition"), DEFINITIONS)
def test_a_definition_has_the_fingerprint_of_its_plan(plan: Plan, definition: Definition) -> None:
    assert definition.plan.fingerprint == plan.fingerprint


def test_every_type_has_one_plan() -> None:
    assert [plan for plan, _ in DEFINITIONS] == list(plans.PLANS)


def test_only_the_steps_that_use_a_bounded_service_ask_for_its_permit() -> None:
    asked = {
        (d.type, step.name): (step.resource, step.hold) for _, d in DEFINITIONS for step in d.steps if step.resource
    }
    assert asked == {
        ("summary", "compose"): ("content_generation", "call"),
        ("stream_transcript", "transcribe"): ("speech_recognition", "task"),
    }


def test_readers_follow_the_summary_alone() -> None:
    assert [definition.type for _, definition in DEFINITIONS if definition.streams] == ["summary"]
