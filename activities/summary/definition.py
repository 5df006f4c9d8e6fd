"""The definition of `summary`: its steps, their limits and the permit of the writing model."""

from functools import partial

from activities.plans import CONTENT_GENERATION, SUMMARY
from activities.summary.compose import compose
from activities.summary.finalize import complete, fail, finalize
from activities.summary.preprocess import preprocess
from activities.summary.record import SummaryPorts
from activities.summary.transcribe import transcribe
from kernel import Definition, Step


def definition(ports: SummaryPorts) -> Definition:
    """`summary` on these ports."""
    return Definition(
        SUMMARY.type,
        (
            Step("preprocess", partial(preprocess, ports), timeout_s=30, max_retry=8),
            Step("transcribe", partial(transcribe, ports), timeout_s=30, max_retry=8),
            Step(
                "compose",
                partial(compose, ports),
                timeout_s=900,
                max_retry=16,  # with the usual backoff: a model that is away for ten minutes fails nothing
                resource=CONTENT_GENERATION,
            ),
            Step("finalize", partial(finalize, ports), timeout_s=30, max_retry=3),
        ),
        success_finalizer=partial(complete, ports),
        failure_finalizer=partial(fail, ports),
        streams=True,
    )
