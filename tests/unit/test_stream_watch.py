"""Packaging a recording, and telling those who wait for it."""

from typing import Any

import pytest

from activities.alongside import Alongside
from activities.payloads import Gap, Packaged, WatchInput
from activities.ports import SourceRefused
from activities.stream_watch import WatchPorts, announce_ready, announce_unavailable, package
from kernel import Fatal
from tests.unit.story import Files, Publisher, Sessions, Source, Stage, Transcripts, window


class Packager:
    """Gives what it was made with."""

    def __init__(self, outcome: Packaged | Exception) -> None:
        self._outcome = outcome
        self.calls = 0

    async def package(self, session_id: str, round: int) -> Packaged:
        self.calls += 1
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


ALONGSIDE = Alongside(Transcripts(), Publisher())
RECORDING = Packaged("media_1", 34.5, 1000)


class Watch:
    """One `stream_watch` whose capture is over."""

    def __init__(self, packager: Packager | None = None, **session: Any) -> None:
        self.sessions = Sessions(**{"state": "ended", "captured_s": 34.0, **session})
        self.packager = packager or Packager(RECORDING)
        self.publisher = Publisher()
        self.stage = Stage(WatchInput("ses_1", 1))
        self.ports = WatchPorts(
            Source(window(0, 1)), self.sessions, self.packager, Files(RECORDING), self.publisher, ALONGSIDE
        )


async def test_the_reference_is_written_after_the_recording_was_packaged() -> None:
    watch = Watch()
    assert await package(watch.ports, watch.stage.context()) == RECORDING
    assert watch.sessions.session.media_id == "media_1"
    assert watch.sessions.session.duration_s == 34.5


async def test_a_second_packaging_finds_the_first_and_makes_none() -> None:
    watch = Watch(media_id="media_0", duration_s=34.0)
    assert (await package(watch.ports, watch.stage.context())).media_id == "media_0"
    assert watch.packager.calls == 0


async def test_a_stream_of_which_nothing_was_captured_is_no_recording() -> None:
    with pytest.raises(Fatal, match="Nothing of this stream could be recorded"):
        await package((watch := Watch(captured_s=0.0, gaps=[Gap(0, 8, "not found")])).ports, watch.stage.context())
    assert watch.packager.calls == 0


@pytest.mark.parametrize("outcome", [SourceRefused("a format that is not read"), Packaged("media_1", 0.0, 0)])
async def test_a_recording_without_audio_fails_without_a_storm_of_retries(outcome: Any) -> None:
    watch = Watch(Packager(outcome))
    with pytest.raises(Fatal):
        await package(watch.ports, watch.stage.context())
    assert watch.sessions.session.media_id is None


async def test_those_who_wait_are_told_after_the_session_became_ready() -> None:
    watch = Watch()
    await announce_ready(watch.ports, watch.stage.final())
    assert watch.sessions.session.state == "ready"
    assert watch.publisher.started == [("stream_fanout:stream_ready:ses_1:1", 1)]


async def test_those_who_wait_are_told_why_there_is_no_recording() -> None:
    watch = Watch()
    await announce_unavailable(watch.ports, watch.stage.final("capture: The stream did not begin within 6 hours."))
    assert watch.sessions.session.error == "The stream did not begin within 6 hours."
    assert watch.publisher.started == [("stream_fanout:stream_unavailable:ses_1:1", 1)]


async def test_those_who_waited_for_an_older_round_are_told_although_the_next_has_begun() -> None:
    watch = Watch(round=2, state="scheduled")
    await announce_unavailable(watch.ports, watch.stage.final("package: The recording holds no audio."))
    assert watch.sessions.session.state == "scheduled"
    assert watch.publisher.started == [("stream_fanout:stream_unavailable:ses_1:1", 1)]
