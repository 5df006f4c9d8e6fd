"""The story of the product, from the subscription to the finished text, with what goes wrong in between."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from activities.payloads import SpeechSegment
from activities.plans import CONTENT_GENERATION, transcript_key, watch_key
from activities.ports import (
    QuotaExhausted,
    SourceGone,
    SourceRefused,
    UselessAnswer,
    WriterFault,
    WriterRefused,
)
from activities.summary.compose import MOST_ANSWERS
from app.subscriptions import BadAddress, KeyReused, NotFailed, NotFound
from kernel import Clock, Limits, Status, StepStatus, StoreUnavailable, UnknownStep
from kernel.testing import fail_at
from tests.story_kit import URL, Story, open_story
from tests.unit.story import Source, window

TEXT = "# night talk\n\n- Tonight: why queues lie.\n- Then: leases.\n"


@pytest.fixture
async def story(db: Any, redis: Any, prefix: str, clock: Clock) -> Story:
    return await open_story(db, redis, prefix, clock)


async def test_three_people_subscribe_and_one_recording_and_one_transcription_serve_them(story: Story) -> None:
    people = ["li", "wang", "zhao"]
    views = await asyncio.gather(*(story.subscribe(person) for person in people))
    await story.settle()
    for person, view in zip(people, views, strict=True):
        done = await story.view(person, view.id)
        assert (done.state, done.text, done.progress, done.step) == ("completed", TEXT, 100, None)
        assert [(step.status, step.attempt) for step in done.steps] == [("completed", 1)] * 4
        assert done.finished_at
    assert (story.world.packaged, len(story.world.tasks), story.world.written) == (1, 1, 3)
    assert {one["status"] for one in await story.all_instances()} == {"completed"}
    transcript = await story.subscriptions.transcript("wang", views[1].id)
    assert transcript is not None
    assert transcript.segments == [
        SpeechSegment(0.0, 4.0, "Tonight: why queues lie."),
        SpeechSegment(5.0, 9.0, "Then: leases."),
    ]
    assert (transcript.language, transcript.decoded_seconds, transcript.expected_seconds) == ("en", 12.0, 12.0)
    assert await story.subscriptions.media("zhao", views[2].id) == f"media-{views[2].session_id}"


async def test_each_subscriber_is_woken_once_by_one_fan_out(story: Story) -> None:
    view = await story.subscribe()
    await story.settle()
    matched = story.db["workflow_signals"].find({"match_time": {"$ne": None}}).sort("signal_type", 1)
    assert [one["signal_type"] for one in await matched.to_list(10)] == [
        "recording_grew",
        "stream_settled",
        "transcript_settled",
    ]
    instance = await story.instance_of(view.id)
    assert [instance.steps[name].waits for name in ("preprocess", "transcribe")] == [1, 1]


async def test_while_it_goes_on_the_view_says_what_is_waited_for(story: Story) -> None:
    view = await story.subscribe()
    assert (view.state, view.step) == ("waiting_for_stream", "preprocess")
    assert view.reason is not None
    assert view.reason.code == "waiting_for_stream_start"
    live = await story.until("li", view.id, "stream_live")
    assert live.reason is not None
    assert live.reason.text == "The stream is live; 6 s recorded so far."
    transcribing = await story.until("li", view.id, "transcribing")
    assert transcribing.state == "transcribing"
    assert live.progress < transcribing.progress < 100
    await story.settle()
    assert (await story.view("li", view.id)).reason is None


async def test_a_request_whose_dispatch_fails_is_accepted_and_recovered(story: Story) -> None:
    with fail_at("Instances.create:before", StoreUnavailable()):
        view = await story.subscribe()
    assert view.state == "waiting_for_stream"
    assert await story.all_instances() == []
    story.wait(seconds=16)
    await story.settle()
    assert (await story.view("li", view.id)).state == "completed"


async def test_the_same_subscription_again_is_the_same_summary(story: Story) -> None:
    first = await story.subscribe()
    again, created = await story.subscriptions.subscribe("li", URL + "#t=5")
    assert (again.id, created) == (first.id, False)
    assert (await story.subscribe(style="minutes")).id != first.id
    assert (await story.subscribe("wang")).id != first.id


async def test_a_stream_that_has_begun_again_is_recorded_again_for_those_who_subscribe_now(story: Story) -> None:
    first = await story.subscribe()
    await story.settle()
    story.world.source = Source(window(0, 1, path="b"), window(0, 3, path="b", ended=True))
    assert (await story.subscribe()).id == first.id, "a minute after its end, a list may still be an old one"
    story.wait(seconds=61)
    second = await story.subscribe()
    assert (await story.subscribe()).id == second.id
    assert second.session_id != first.session_id
    await story.settle()
    done = await story.view("li", second.id)
    assert (done.state, (await story.view("li", first.id)).state) == ("completed", "completed")
    assert story.world.packaged == 2
    transcripts = await story.db["transcripts"].find({}).to_list(5)
    assert {one["session_id"] for one in transcripts} == {first.session_id, second.session_id}


async def test_a_stream_that_is_still_over_is_not_recorded_again(story: Story) -> None:
    await story.subscribe()
    await story.settle()
    story.wait(days=1)
    await story.subscribe("wang")
    story.world.source = Source(SourceGone("404"))
    await story.subscribe("zhao")
    await story.settle()
    assert (await story.db["sessions"].count_documents({}), story.world.packaged) == (1, 1)


async def test_a_key_used_again_gives_the_same_summary_and_never_another(story: Story) -> None:
    first = await story.subscribe(idempotency_key="k1")
    again, created = await story.subscriptions.subscribe("li", URL, idempotency_key="k1")
    assert (again.id, created) == (first.id, False)
    with pytest.raises(KeyReused):
        await story.subscribe(style="minutes", idempotency_key="k1")
    await story.subscriptions.remove("li", first.id)
    assert (await story.subscribe(idempotency_key="k1")).id == first.id
    assert await story.db["summaries"].count_documents({}) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1/a.m3u8"])
async def test_a_forbidden_address_is_refused_and_leaves_nothing_behind(story: Story, url: str) -> None:
    with pytest.raises(BadAddress, match="loopback"):
        await story.subscribe(url=url, idempotency_key="k1")
    for name in ("streams", "sessions", "summaries", "request_keys"):
        assert await story.db[name].count_documents({}) == 0


async def test_quota_bounds_what_may_be_started_and_is_returned_by_a_failure(
    db: Any, redis: Any, prefix: str, clock: Clock
) -> None:
    story = await open_story(db, redis, prefix, clock, per_day=1)
    story.world.writer_errors = [WriterRefused("a wrong key")]
    view = await story.subscribe()
    await story.turn()
    with pytest.raises(QuotaExhausted):
        await story.subscribe(style="minutes")
    assert (await story.subscribe()).id == view.id, "what there is already needs no quota"
    await story.settle()
    assert (await story.view("li", view.id)).error == "a wrong key"
    await story.subscriptions.retry("li", view.id)
    await story.settle()
    assert (await story.view("li", view.id)).state == "completed"
    with pytest.raises(QuotaExhausted):
        await story.subscribe(style="minutes")


async def test_a_person_waits_for_so_many_streams_at_once_and_no_more(story: Story) -> None:
    for number in range(50):
        await story.subscribe(url=f"{URL}?{number}")
    with pytest.raises(QuotaExhausted, match="wait for 50 streams"):
        await story.subscribe(url=f"{URL}?one-more")
    assert (await story.subscribe(url=f"{URL}?3")).state == "waiting_for_stream", "what there is already stays"
    await story.subscribe("wang", url=f"{URL}?one-more")
    assert await story.db["summaries"].count_documents({"user_id": "li"}) == 50


async def test_a_writer_that_breaks_off_is_retried_and_the_text_is_there_once(story: Story) -> None:
    story.world.writer_errors = [WriterFault("broke off"), WriterFault("busy", 2.0)]
    view = await story.subscribe()
    await story.settle()
    done = await story.view("li", view.id)
    assert (done.state, done.text) == ("completed", TEXT)
    assert {step.name: step.attempt for step in done.steps} == {
        "preprocess": 1,
        "transcribe": 1,
        "compose": 3,
        "finalize": 1,
    }


async def test_a_model_that_is_away_for_ten_minutes_fails_nothing(story: Story) -> None:
    story.world.writer_errors = [WriterFault("The connection to the model failed.") for _ in range(14)]
    view = await story.subscribe()
    began = story.parts.clock.hint(0)
    await story.settle()
    assert (await story.view("li", view.id)).state == "completed"
    assert story.parts.clock.hint(0) - began > timedelta(minutes=8)


async def test_a_model_that_answers_with_no_summary_is_asked_a_few_times_only(story: Story) -> None:
    story.world.writer_errors = [UselessAnswer("The model's answer is empty.") for _ in range(MOST_ANSWERS)]
    view = await story.subscribe()
    await story.settle()
    failed = await story.view("li", view.id)
    assert (failed.state, failed.error) == ("failed", "The model's answer is empty. It was asked 4 times.")


async def test_a_retry_begins_a_new_round_and_repeats_only_what_failed(story: Story) -> None:
    story.world.writer_errors = [WriterRefused("a wrong key")]
    view = await story.subscribe()
    with pytest.raises(NotFailed):
        await story.subscriptions.retry("li", view.id)
    await story.settle()
    failed = await story.view("li", view.id)
    assert (failed.state, failed.error, failed.step) == ("failed", "a wrong key", "compose")
    with pytest.raises(NotFound):
        await story.subscriptions.retry("wang", view.id)
    again = await story.subscriptions.retry("li", view.id)
    assert (again.round, again.error, again.finished_at) == (2, None, None)
    await story.settle()
    done = await story.view("li", view.id)
    assert (done.state, done.text, done.round) == ("completed", TEXT, 2)
    assert (len(story.world.tasks), story.world.packaged) == (1, 1)


async def test_of_many_retries_at_once_one_wins(story: Story) -> None:
    story.world.writer_errors = [WriterRefused("a wrong key")]
    view = await story.subscribe()
    await story.settle()
    tries = [story.subscriptions.retry("li", view.id) for _ in range(5)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(one, NotFailed) for one in outcomes) == 4
    await story.settle()
    assert (await story.view("li", view.id)).round == 2


async def test_an_unavailable_stream_fails_all_who_wait_and_the_next_subscriber_revives_it(story: Story) -> None:
    story.world.source = Source(SourceRefused("DRM is not read"))
    views = {person: await story.subscribe(person) for person in ("li", "wang")}
    await story.settle()
    for person, view in views.items():
        failed = await story.view(person, view.id)
        assert (failed.state, failed.error) == ("failed", "DRM is not read")
    story.world.source = Source(window(0, 5, ended=True))
    later = await story.subscribe("zhao")
    await story.subscriptions.retry("li", views["li"].id)
    await story.settle()
    assert (await story.view("zhao", later.id)).state == "completed"
    assert (await story.view("li", views["li"].id)).state == "completed"
    assert (await story.view("wang", views["wang"].id)).state == "failed"
    watch = await story.instance(watch_key(later.session_id))
    assert (watch.round, watch.run) == (2, 2)


async def test_a_recording_that_could_not_be_packaged_keeps_its_segments_for_the_next_round(story: Story) -> None:
    story.world.packager_errors = [SourceRefused("no decoder")]
    view = await story.subscribe()
    await story.settle()
    story.world.source = Source(SourceGone("404"))
    await story.subscriptions.retry("li", view.id)
    await story.settle()
    assert (await story.view("li", view.id)).state == "completed"


async def test_a_failed_transcription_is_begun_anew_by_a_retry(story: Story) -> None:
    story.world.speech_errors = ["out of memory"]
    view = await story.subscribe()
    await story.settle()
    assert "out of memory" in str((await story.view("li", view.id)).error)
    await story.subscriptions.retry("li", view.id)
    await story.settle()
    done = await story.view("li", view.id)
    assert done.state == "completed"
    assert len(story.world.tasks) == 2
    transcript = await story.transcripts.of_session(done.session_id)
    assert transcript is not None
    assert (await story.instance(transcript_key(transcript.transcript_id))).round == 2


async def test_an_older_round_that_is_still_failing_does_not_lose_the_next(story: Story) -> None:
    story.world.source = Source(SourceRefused("DRM is not read"))
    view = await story.subscribe()
    with fail_at("SessionRecords.mark_unavailable:after", StoreUnavailable()):
        while (await story.instance_of(view.id)).steps["preprocess"].status is not StepStatus.WAITING:
            await story.turn()
        await story.turn()
    assert (await story.instance(watch_key(view.session_id))).status is Status.FAILING
    story.world.source = Source(window(0, 5, ended=True))
    later = await story.subscribe("wang")
    await story.settle()
    assert (await story.view("wang", later.id)).state == "completed"


async def test_a_removed_summary_goes_on_until_it_cannot_be_brought_back(story: Story) -> None:
    view = await story.subscribe()
    await story.turn()
    assert await story.subscriptions.remove("li", view.id)
    assert await story.subscriptions.find("li", view.id) is None
    assert await story.subscriptions.listing("li", 10, None) == []
    assert not await story.subscriptions.remove("li", view.id)
    assert await story.subscriptions.undo_remove("li", view.id)
    await story.settle()
    assert (await story.view("li", view.id)).state == "completed"


async def test_a_removal_ends_object_workflow_and_quota(story: Story) -> None:
    view, other = await story.subscribe(), await story.subscribe("wang")
    await story.turn()
    await story.subscriptions.remove("li", view.id)
    story.wait(seconds=11)
    assert await story.subscriptions.purge() == 1
    assert not await story.subscriptions.undo_remove("li", view.id)
    assert (await story.instance_of(view.id)).status is Status.CANCELED
    assert all(one["returned"] for one in (await story.db["quota"].find_one({"_id": "li"}))["holds"])
    await story.settle()
    assert (await story.view("wang", other.id)).state == "completed"
    assert (await story.instance_of(view.id)).status is Status.CANCELED


async def test_after_a_removal_the_same_subscription_is_a_new_summary(story: Story) -> None:
    view = await story.subscribe()
    await story.settle()
    await story.subscriptions.remove("li", view.id)
    assert (await story.subscribe()).id == view.id, "subscribing again undoes a removal that can be undone"
    await story.subscriptions.remove("li", view.id)
    story.wait(seconds=11)
    await story.settle()
    fresh = await story.subscribe()
    assert fresh.id != view.id
    await story.settle()
    assert (await story.view("li", fresh.id)).state == "completed"


async def test_a_removal_that_died_half_way_is_finished_by_the_next_purge(story: Story) -> None:
    view = await story.subscribe()
    await story.turn()
    await story.subscriptions.remove("li", view.id)
    story.wait(seconds=11)
    with fail_at("Instances.supersede:before", StoreUnavailable()), pytest.raises(StoreUnavailable):
        await story.subscriptions.purge()
    assert await story.subscriptions.purge() == 1
    assert (await story.instance_of(view.id)).status is Status.CANCELED


async def test_an_operator_cancels_and_retries_through_the_business_service(story: Story) -> None:
    story.world.writer_errors = [WriterRefused("a wrong key")]
    failed, other = await story.subscribe(), await story.subscribe("wang", url=URL + "?other")
    assert await story.subscriptions.supersede(other.workflow_id, "asked for") is False, "not seen by any worker yet"
    await story.turn()
    await story.turn()
    assert await story.subscriptions.supersede(other.workflow_id, "asked for")
    assert not await story.subscriptions.supersede(other.workflow_id, "asked for")
    await story.settle()
    canceled = await story.view("wang", other.id)
    assert (canceled.state, canceled.error) == ("canceled", "asked for")
    with pytest.raises(UnknownStep, match="there are: preprocess, transcribe, compose, finalize"):
        await story.subscriptions.retry_workflow(failed.workflow_id, "write")
    assert await story.subscriptions.retry_workflow(failed.workflow_id, "transcribe")
    await story.settle()
    done = await story.view("li", failed.id)
    assert (done.state, len(story.world.tasks)) == ("completed", 2), "one for each stream; the retry needs no other"
    attempts = await story.projections.attempts(failed.workflow_id)
    assert sorted({(one["step"], one["run"]) for one in attempts}) == [
        ("compose", 1),
        ("compose", 2),
        ("finalize", 2),
        ("preprocess", 1),
        ("transcribe", 1),
        ("transcribe", 2),
    ]
    assert (await story.subscribe("wang", url=URL + "?other")).id != other.id


async def test_everyone_sees_only_their_own(story: Story) -> None:
    view = await story.subscribe()
    await story.settle()
    asks = story.subscriptions
    assert await asks.find("wang", view.id) is None
    assert await asks.transcript("wang", view.id) is None
    assert await asks.media("wang", view.id) is None
    assert await asks.listing("wang", 10, None) == []
    assert not await asks.remove("wang", view.id)
    assert [one.id for one in await asks.listing("li", 10, None)] == [view.id]


async def test_a_step_that_waits_for_a_permit_says_so(story: Story) -> None:
    await story.parts.limits.change(CONTENT_GENERATION, Limits(1, 0))
    await story.parts.permits.acquire(CONTENT_GENERATION, "somebody/else", "token", Limits(1, 0))
    view = await story.subscribe()
    waiting = await story.until("li", view.id, "waiting_for_writer_permit")
    assert waiting.step == "compose"
    assert waiting.reason is not None
    assert waiting.reason.since
    await story.parts.permits.release(CONTENT_GENERATION, "somebody/else", "token")
    await story.settle()
    done = await story.view("li", view.id)
    assert (done.state, done.steps[2].attempt) == ("completed", 1)
    assert (await story.instance_of(view.id)).steps["compose"].status is StepStatus.COMPLETED
