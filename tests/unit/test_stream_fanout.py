"""Telling many: in pages, once each, whatever is repeated."""

import pytest

from activities.payloads import FanoutInput, Summary
from activities.stream_fanout import Delivered, FanoutPorts, deliver
from kernel import Fatal, Yield, workflow_id_of
from tests.unit.story import Publisher, Stage, Summaries


def crowd(count: int) -> list[Summary]:
    return [
        Summary(
            summary_id=f"sum_{number:04d}",
            user_id="usr_1",
            session_id="ses_1",
            round=2,
            state="waiting_for_stream",
            style="brief",
            language="auto",
        )
        for number in range(count)
    ]


class Fanout:
    def __init__(self, count: int, topic: str = "stream_ready") -> None:
        self.publisher = Publisher()
        self.summaries = Summaries()
        self.summaries.crowd = crowd(count)
        self.stage = Stage(FanoutInput(topic, "ses_1", 3))

    async def page(self) -> object:
        return self.stage.take(await deliver(FanoutPorts(self.summaries, self.publisher), self.stage.context()))


async def test_every_waiting_summary_is_told_once_page_by_page() -> None:
    fanout = Fanout(450)
    outcomes = [await fanout.page() for _ in range(3)]
    assert outcomes[:2] == [Yield(Delivered("sum_0199", 200)), Yield(Delivered("sum_0399", 400))]
    assert outcomes[2] == Delivered("sum_0449", 450)
    assert len({signal.signal_id for signal in fanout.publisher.signals}) == 450


async def test_a_signal_names_fact_and_listener_with_both_rounds() -> None:
    fanout = Fanout(1)
    await fanout.page()
    (signal,) = fanout.publisher.signals
    assert signal.signal_id == "stream_ready:ses_1:3:sum_0000:2"
    assert signal.workflow_id == workflow_id_of("summary:sum_0000")
    assert (signal.signal_type, signal.wait_key, signal.generation) == ("stream_settled", "ses_1", 2)


async def test_a_page_that_is_delivered_twice_uses_the_same_ids() -> None:
    fanout = Fanout(3)
    await fanout.page()
    fanout.stage.checkpoint = None
    await fanout.page()
    ids = [signal.signal_id for signal in fanout.publisher.signals]
    assert sorted(ids[:3]) == sorted(ids[3:])


async def test_a_crowd_that_fills_its_last_page_exactly_ends_with_an_empty_one() -> None:
    fanout = Fanout(200)
    assert isinstance(await fanout.page(), Yield)
    assert await fanout.page() == Delivered("sum_0199", 200)


async def test_nobody_waits_and_nothing_is_told() -> None:
    assert await Fanout(0).page() == Delivered()


@pytest.mark.parametrize("topic", ["transcript_ready", "transcript_failed"])
async def test_a_transcripts_topic_rings_for_the_transcript(topic: str) -> None:
    fanout = Fanout(1, topic)
    await fanout.page()
    assert fanout.publisher.signals[0].signal_type == "transcript_settled"


async def test_a_topic_that_nobody_knows_fails() -> None:
    with pytest.raises(Fatal, match="no_such"):
        await Fanout(1, "no_such").page()
