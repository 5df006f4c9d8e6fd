"""Recording a stream that behaves as real ones do: restarts, outages, losses, ends of every kind."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from activities.alongside import Alongside
from activities.capture import CaptureLimits, Recorded
from activities.payloads import Packaged, WatchInput
from activities.ports import FileFound, SourceFault, SourceGone, SourceRefused
from activities.stream_watch import WatchPorts, capture
from kernel import Fatal, RetryAfter, StaleRound, WaitForSignal, WorkflowCanceled, Yield
from tests.unit.story import Files, Publisher, Sessions, Source, Stage, Transcripts, gap_times, window

LIMITS = CaptureLimits()
GONE = SourceGone("the address answers 404")
FAULT = SourceFault("the address answers 503")


class Watch:
    """One `stream_watch` at its capture step."""

    def __init__(self, source: Source, limits: CaptureLimits = LIMITS, **session: Any) -> None:
        self.sessions = Sessions(**session)
        self.source = source
        self.stage = Stage(WatchInput("ses_1", 1))
        self.publisher = Publisher()
        self.transcripts = Transcripts()
        alongside = Alongside(self.transcripts, self.publisher)
        self.files = Files(Packaged("media_1", 61.5, 9000))
        packager: Any = None
        self.ports = WatchPorts(source, self.sessions, packager, self.files, self.publisher, alongside, limits)

    async def poll(self) -> Any:
        return self.stage.take(await capture(self.ports, self.stage.context()))

    async def run(self, polls: int = 500) -> Recorded:
        for _ in range(polls):
            outcome = await self.poll()
            if isinstance(outcome, Recorded):
                return outcome
        raise AssertionError("the recording does not end")

    @property
    def elapsed_s(self) -> float:
        return (self.stage.now - Stage(WatchInput("", 1)).now).total_seconds()


async def test_a_live_stream_is_recorded_from_its_first_listed_segment_to_its_end() -> None:
    watch = Watch(Source(window(5, 7), window(5, 8), window(7, 10), window(7, 10, ended=True)))
    ended = await watch.run()
    assert watch.sessions.data == b"5.ts 6.ts 7.ts 8.ts 9.ts 10.ts"
    assert ended == Recorded("the stream ended", recorded_s=12.0, gaps=0)
    assert [known.start_s for known in await watch.sessions.captured("ses_1", -1)] == [0, 2, 4, 6, 8, 10]
    assert watch.sessions.session.state == "ended"


async def test_a_poll_waits_for_a_hint_and_asks_again_after_half_a_segment_length() -> None:
    watch = Watch(Source(window(0, 2)))
    outcome = await watch.poll()
    assert isinstance(outcome, WaitForSignal)
    assert (outcome.signal_type, outcome.key, outcome.generation) == ("stream_hint", "ses_1", 1)
    assert outcome.poll_fallback_s == 1.0
    assert watch.sessions.session.state == "live"


@pytest.mark.parametrize(("length_s", "wait_s"), [(0.5, 1.0), (6.0, 3.0), (30.0, 6.0)])
async def test_the_time_between_polls_follows_the_segments_within_bounds(length_s: float, wait_s: float) -> None:
    assert (await Watch(Source(window(0, 2, length_s=length_s))).poll()).poll_fallback_s == wait_s


async def test_an_end_that_comes_without_a_new_segment_ends_within_one_reload() -> None:
    watch = Watch(Source(window(0, 3), window(0, 3, ended=True)))
    await watch.run(polls=2)
    assert len(watch.sessions.segments) == 4


async def test_an_end_that_comes_on_an_empty_list_ends_within_one_reload() -> None:
    watch = Watch(Source(window(0, 3), window(4, 3, ended=True)))
    assert (await watch.run(polls=2)).recorded_s == 8.0


async def test_a_list_that_freezes_ends_after_the_silence_deadline() -> None:
    watch = Watch(Source(window(0, 3)))
    ended = await watch.run()
    assert "nothing new for 60 s" in ended.ended_by
    assert 60 <= watch.elapsed_s < 66


@pytest.mark.parametrize("answer", [GONE, SourceRefused("the address answers 403")])
async def test_a_stream_that_is_gone_for_good_ends_after_the_grace_time_with_what_is_there(answer: Exception) -> None:
    watch = Watch(Source(window(0, 3), answer))
    ended = await watch.run()
    assert "gone for 15 s" in ended.ended_by
    assert str(answer) in ended.ended_by
    assert ended.recorded_s == 8.0
    assert 15 <= watch.elapsed_s < 20


async def test_a_stream_that_cannot_be_read_for_good_ends_after_the_silence_deadline() -> None:
    watch = Watch(Source(window(0, 3), FAULT))
    assert "503" in (await watch.run()).ended_by
    assert 60 <= watch.elapsed_s < 66


async def test_an_outage_of_ten_seconds_changes_nothing() -> None:
    watch = Watch(Source(window(0, 3), *[GONE] * 5, window(0, 9), window(0, 9, ended=True)))
    ended = await watch.run()
    assert ended == Recorded("the stream ended", recorded_s=20.0, gaps=0)
    assert watch.sessions.writes.count("mark live") == 1
    assert watch.sessions.troubles == ["the address answers 404", None]


async def test_twenty_flaps_within_the_grace_time_change_nothing() -> None:
    flaps = [answer for last in range(3, 23) for answer in (GONE, window(last - 3, last))]
    watch = Watch(Source(window(0, 2), *flaps, window(20, 22, ended=True)))
    assert await watch.run() == Recorded("the stream ended", recorded_s=46.0, gaps=0)


async def test_silence_is_not_counted_while_none_of_our_workers_looked() -> None:
    watch = Watch(Source(window(0, 3), FAULT, window(0, 5), window(0, 5, ended=True)))
    await watch.poll()
    watch.stage.now += timedelta(minutes=5)
    assert isinstance(await watch.poll(), WaitForSignal)
    assert (await watch.run()).recorded_s == 12.0


async def test_a_last_segment_that_is_not_there_is_a_gap_and_the_recording_ends() -> None:
    watch = Watch(Source(window(0, 3, ended=True), broken={"3.ts": [GONE]}))
    ended = await watch.run(polls=3)
    assert ended == Recorded("the stream ended", recorded_s=6.0, gaps=1)
    assert gap_times(watch.sessions.session.gaps) == [(6.0, 2.0)]


async def test_a_segment_that_comes_late_is_no_gap() -> None:
    watch = Watch(Source(window(0, 3), window(0, 3, ended=True), broken={"2.ts": [GONE, None]}))
    assert await watch.run() == Recorded("the stream ended", recorded_s=8.0, gaps=0)


async def test_a_restarted_encoder_goes_on_under_new_numbers_and_nothing_is_taken_twice() -> None:
    watch = Watch(Source(window(140, 143), window(0, 1, path="b"), window(0, 2, path="b", ended=True)))
    ended = await watch.run()
    assert watch.sessions.data == b"140.ts 141.ts 142.ts 143.ts 0.ts 1.ts 2.ts"
    assert sorted(watch.sessions.segments) == [0, 1, 2, 3, 4, 5, 6]
    assert ended.recorded_s == 14.0
    assert watch.sessions.segments[4][2], "the first segment after the restart does not join the one before"
    assert not watch.sessions.segments[5][2]


async def test_a_restart_that_has_counted_up_to_our_number_already_is_noticed() -> None:
    restarted = window(0, 9, path="b")
    renamed = [msgspec.structs.replace(s, url=s.url.replace("/b/", "/b/new-")) for s in restarted.segments]
    watch = Watch(Source(window(2, 5), msgspec.structs.replace(restarted, segments=renamed, ended=True)))
    await watch.run()
    assert len(watch.sessions.segments) == 4 + 10


async def test_an_old_copy_of_the_list_from_a_cache_is_no_restart() -> None:
    watch = Watch(Source(window(0, 5), window(0, 3), window(2, 6), window(2, 6, ended=True)))
    assert (await watch.run()).recorded_s == 14.0
    assert watch.source.fetched == [f"{number}.ts" for number in range(7)]


async def test_a_list_that_jumps_ahead_leaves_a_gap_of_the_missing_length() -> None:
    watch = Watch(Source(window(140, 143), window(174, 176), window(174, 176, ended=True)))
    ended = await watch.run()
    assert gap_times(watch.sessions.session.gaps) == [(8.0, 60.0)]
    assert ended.recorded_s == 14.0
    assert (await watch.sessions.captured("ses_1", -1))[-1].start_s == 72.0


async def test_a_jump_that_no_stream_could_have_made_is_a_new_count_and_no_gap() -> None:
    watch = Watch(Source(window(1, 3), window(1_700_000_000, 1_700_000_001, ended=True)))
    assert await watch.run() == Recorded("the stream ended", recorded_s=10.0, gaps=0)


async def test_lost_segments_side_by_side_are_one_gap() -> None:
    watch = Watch(Source(window(0, 4, ended=True), broken={"1.ts": [GONE], "2.ts": [GONE]}))
    await watch.run()
    assert gap_times(watch.sessions.session.gaps) == [(2.0, 4.0)]
    assert watch.sessions.session.captured_s == 6.0


async def test_a_stream_that_has_not_begun_is_waited_for_with_growing_patience() -> None:
    watch = Watch(Source(GONE))
    waits = [(await watch.poll()).poll_fallback_s for _ in range(20)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (2.0, 60.0)
    assert watch.sessions.session.state == "scheduled"
    assert watch.sessions.troubles == ["the address answers 404"]


async def test_a_stream_that_never_begins_fails_with_the_last_answer() -> None:
    watch = Watch(Source(GONE))
    with pytest.raises(Fatal, match=r"did not begin within 6 hours.*404"):
        await watch.run()


async def test_an_empty_list_is_a_stream_that_has_not_begun() -> None:
    watch = Watch(Source(window(0, -1), window(0, -1), window(0, 1), window(0, 1, ended=True)))
    assert (await watch.run()).recorded_s == 4.0
    assert len(watch.sessions.troubles) == 2


async def test_a_source_that_may_not_be_read_fails_at_once() -> None:
    with pytest.raises(Fatal, match="a private address"):
        await Watch(Source(SourceRefused("a private address"))).poll()


async def test_a_first_segment_that_may_not_be_read_fails_at_once() -> None:
    with pytest.raises(Fatal, match="SAMPLE-AES"):
        await Watch(Source(window(0, 3), broken={"0.ts": [SourceRefused("SAMPLE-AES is not read")]})).poll()


async def test_a_later_segment_that_may_not_be_read_is_a_gap() -> None:
    watch = Watch(Source(window(0, 3, ended=True), broken={"2.ts": [SourceRefused("a key of 8 bytes")]}))
    assert await watch.run() == Recorded("the stream ended", recorded_s=6.0, gaps=1)


async def test_a_segment_too_large_to_be_stored_is_a_gap() -> None:
    watch = Watch(Source(window(9, 10, ended=True)), CaptureLimits(segment_bytes=4))
    assert await watch.run() == Recorded("the stream ended", recorded_s=2.0, gaps=1)


async def test_a_long_recorded_stream_is_taken_in_shares_that_give_way_to_others() -> None:
    watch = Watch(Source(window(0, 44, ended=True)))
    assert [type(await watch.poll()) for _ in range(3)] == [Yield, Yield, Recorded]
    assert len(watch.source.fetched) == 45


async def test_the_word_of_the_streams_own_system_ends_a_list_that_stands_still() -> None:
    watch = Watch(Source(window(0, 3)), hint="ended")
    assert "said that it ended" in (await watch.run(polls=3)).ended_by


async def test_the_longest_recording_is_a_bound() -> None:
    watch = Watch(Source(*[window(0, last) for last in range(100)]), CaptureLimits(longest_s=20))
    assert "longest recording" in (await watch.run()).ended_by


async def test_a_worker_that_died_before_its_checkpoint_leaves_nothing_to_be_fetched_again() -> None:
    watch = Watch(Source(window(0, 3), window(0, 5), window(6, 9), window(6, 9, ended=True)))
    await watch.poll()
    kept = watch.stage.checkpoint
    await watch.poll()
    watch.stage.checkpoint = kept
    ended = await watch.run()
    assert ended == Recorded("the stream ended", recorded_s=20.0, gaps=0)
    assert watch.source.fetched == [f"{number}.ts" for number in range(10)]


async def test_a_recording_whose_checkpoint_was_cleared_goes_on_from_what_is_stored() -> None:
    watch = Watch(Source(window(3, 6), window(3, 6), window(5, 7, ended=True), broken={"4.ts": [GONE]}))
    await watch.poll()
    await watch.poll()
    watch.stage.checkpoint = None
    ended = await watch.run()
    assert watch.sessions.data == b"3.ts 5.ts 6.ts 7.ts"
    assert gap_times(watch.sessions.session.gaps) == [(2.0, 2.0)]
    assert ended.recorded_s == 8.0
    assert watch.sessions.session.gaps[0].reason == "not found"


async def test_after_a_fault_the_next_poll_goes_through_the_entrance() -> None:
    watch = Watch(Source(window(0, 1), FAULT, window(0, 2)))
    for _ in range(3):
        await watch.poll()
    entrance = watch.sessions.session.url
    assert watch.source.asked == [entrance, "https://live.example/media.m3u8", entrance]


async def test_a_recording_that_has_ended_is_not_polled_again() -> None:
    watch = Watch(Source(FAULT), state="ended", captured_s=8.0)
    assert (await watch.run(polls=1)).recorded_s == 8.0
    assert watch.source.asked == []


async def test_another_round_of_the_session_stops_the_recording() -> None:
    with pytest.raises(StaleRound):
        await Watch(Source(window(0, 1)), round=2).poll()


async def test_a_session_that_was_removed_cancels_the_recording() -> None:
    with pytest.raises(WorkflowCanceled):
        await Watch(Source(window(0, 1)), session_id="ses_other").poll()


# ---- single files ----

FILE = FileFound("https://live.example/talk.mp3 is an MP3 file, not an HLS playlist.")


@pytest.mark.parametrize("url", ["https://live.example/talk.mp3", "upload://usr_1/ab12/talk.mp3"])
async def test_a_single_file_is_recorded_as_a_whole(url: str) -> None:
    watch = Watch(Source(FILE), url=url)
    assert await watch.poll() == Recorded("the whole file was read", 61.5)
    session = watch.sessions.session
    assert (session.state, session.media_id, session.duration_s, session.file) == ("ended", "media_1", 61.5, True)
    assert watch.sessions.writes == ["mark live", "progress", "media", "mark ended"]
    assert watch.files.read == [url]
    assert ("stream_fanout:stream_ended:ses_1:1", 1) in watch.publisher.started


async def test_a_file_whose_recording_is_referred_to_is_not_read_again() -> None:
    watch = Watch(Source(FILE), state="live", media_id="media_0", captured_s=61.5)
    assert (await watch.poll()).recorded_s == 61.5
    assert watch.files.read == []
    assert watch.sessions.session.media_id == "media_0"


async def test_a_file_that_cannot_be_heard_fails_for_good_and_one_that_cannot_be_reached_is_tried_again() -> None:
    watch = Watch(Source(FILE))
    watch.files = Files(SourceFault("503"), SourceRefused("The file cannot be heard: it holds no audio."))
    watch.ports = replace(watch.ports, files=watch.files)
    with pytest.raises(RetryAfter):
        await watch.poll()
    with pytest.raises(Fatal, match="holds no audio"):
        await watch.poll()


async def test_a_stream_that_turns_into_a_file_is_over_with_what_was_recorded() -> None:
    watch = Watch(Source(window(0, 3), FILE))
    await watch.poll()
    assert isinstance(await watch.poll(), WaitForSignal)
    assert watch.files.read == []


# ---- the transcription alongside ----


async def test_speech_is_recognised_from_the_first_segment_on_and_told_of_the_end_once() -> None:
    watch = Watch(Source(window(0, -1), window(0, 1), window(0, 3), window(0, 3, ended=True)))
    await watch.poll()
    assert watch.publisher.started == []
    await watch.run()
    assert watch.publisher.started == [("stream_transcript:tra_1", 1), ("stream_fanout:stream_ended:ses_1:1", 1)]
    (told,) = watch.publisher.signals
    assert (told.signal_type, told.wait_key, told.generation) == ("recording_grew", "ses_1", 1)


async def test_the_transcription_is_told_each_half_minute_that_there_is_more() -> None:
    watch = Watch(Source(*(window(0, last) for last in range(1, 35, 3)), window(0, 34, ended=True)))
    await watch.run()
    assert [signal.signal_id.rpartition(":")[2] for signal in watch.publisher.signals] == ["1", "2", "end"]


async def test_a_death_before_the_first_checkpoint_begins_the_transcription_again() -> None:
    watch = Watch(Source(window(0, 1)))
    await watch.poll()
    watch.stage.checkpoint = None
    await watch.poll()
    await watch.poll()
    assert watch.publisher.started == [("stream_transcript:tra_1", 1)] * 2


async def test_a_transcript_that_can_never_be_made_does_not_stop_the_recording() -> None:
    watch = Watch(Source(window(0, 1), window(0, 1, ended=True)))
    watch.publisher.finds["stream_transcript:tra_1"] = SimpleNamespace(status="canceled", round=1)
    assert await watch.run() == Recorded("the stream ended", recorded_s=4.0, gaps=0)
