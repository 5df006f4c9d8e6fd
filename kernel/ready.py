"""Which steps of an instance may run now. Pure: an instance, its plan and the time in, names out.

A linear flow is the graph in which every wave holds one step.
"""

from datetime import datetime

from kernel.definition import MAX_WAVE, Plan
from kernel.model import DONE, SETTLED, Instance, StepState, StepStatus


def open_steps(instance: Instance, plan: Plan) -> list[str]:
    """Names of the steps that have not settled and whose dependencies are done, in step order."""
    done = {name for name, step in instance.steps.items() if step.status in DONE}
    return [
        name
        for name in instance.step_order
        if instance.steps[name].status not in SETTLED and done.issuperset(plan.dependencies_of(name))
    ]


def ready_steps(instance: Instance, plan: Plan, now: datetime) -> list[str]:
    """Names of the next wave, in step order, at most `MAX_WAVE`.

    `running` is ready again (its worker died), `waiting` is not: only an activation makes it pending.
    """
    return [name for name in open_steps(instance, plan) if _may_run(instance.steps[name], now)][:MAX_WAVE]


def _may_run(step: StepState, now: datetime) -> bool:
    return step.status is not StepStatus.WAITING and (step.due is None or step.due <= now)


def failed_step(instance: Instance) -> str | None:
    """The first failed step, if any."""
    return next((n for n in instance.step_order if instance.steps[n].status is StepStatus.FAILED), None)


def all_done(instance: Instance) -> bool:
    """Whether every step is completed or skipped."""
    return all(step.status in DONE for step in instance.steps.values())


def waiting_steps(instance: Instance) -> list[str]:
    """Names of the steps that wait for a timer or a signal."""
    return [n for n in instance.step_order if instance.steps[n].status is StepStatus.WAITING]


def current_step(instance: Instance) -> str | None:
    """The first step that is not completed or skipped: where the instance stands."""
    return next((n for n in instance.step_order if instance.steps[n].status not in DONE), None)
