"""`stream_fanout`: tell every waiting summary that something happened to its stream or transcript, page by page.

The cursor in the checkpoint says how far it is; the stable id of each signal says who has been told. Together they make
a page that is delivered twice harmless.
"""

from dataclasses import dataclass
from functools import partial

import msgspec

from activities.payloads import FanoutInput, Summary
from activities.plans import SIGNAL_OF, STREAM_FANOUT, settled_signal_id, summary_key
from activities.ports import Summaries
from kernel import Definition, Fatal, Outcome, Publisher, Signal, Step, StepContext, Yield, workflow_id_of

PAGE = 200


@dataclass(frozen=True, slots=True)
class FanoutPorts:
    """What telling others needs."""

    summaries: Summaries
    publisher: Publisher


class Delivered(msgspec.Struct, frozen=True):
    """Checkpoint and output of `deliver`: the last summary told, and how many there were."""

    after: str = ""
    count: int = 0


def definition(ports: FanoutPorts) -> Definition:
    """`stream_fanout` on these ports."""
    return Definition(STREAM_FANOUT.type, (Step("deliver", partial(deliver, ports), timeout_s=120, max_retry=20),))


async def deliver(ports: FanoutPorts, ctx: StepContext) -> Outcome:
    """One page of signals."""
    told = ctx.load_input(FanoutInput)
    if told.topic not in SIGNAL_OF:
        raise Fatal(f"No signal belongs to the topic {told.topic!r}.")
    done = ctx.load_checkpoint(Delivered) or Delivered()
    page = await ports.summaries.waiting(told.topic, told.source_id, done.after, PAGE)
    await ports.publisher.deliver_signals([_signal(told, summary) for summary in page])
    if not page:
        return done
    done = Delivered(page[-1].summary_id, done.count + len(page))
    return done if len(page) < PAGE else Yield(done)


def _signal(told: FanoutInput, summary: Summary) -> Signal:
    return Signal(
        signal_id=settled_signal_id(told.topic, told.source_id, told.fencing_token, summary.summary_id, summary.round),
        workflow_id=workflow_id_of(summary_key(summary.summary_id)),
        signal_type=SIGNAL_OF[told.topic],
        wait_key=told.source_id,
        generation=summary.round,
    )
