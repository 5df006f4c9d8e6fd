"""The store of transcription tasks: one task for a key, one holder at a time, nothing twice."""

import asyncio
from datetime import timedelta

import pytest

from activities.payloads import SpeechSegment
from app.asr.recognition import Step
from app.asr.server import sweep
from app.asr.submissions import Submissions
from app.asr.tasks import STRIKES, AsrTasks, Failure, task_id_of
from kernel import ClaimLost, Clock
from kernel.testing import Crash, crash_at

LEASE_S = 6.0
FAULT = Failure("internal_error", "It failed.", retryable=True)
REFUSAL = Failure("no_audio_stream", "It is silent.", retryable=False)


@pytest.fixture
async def tasks(db, clock: Clock) -> AsrTasks:
    opened = AsrTasks(db, clock, LEASE_S)
    await opened.prepare()
    return opened


@pytest.fixture
def submissions(db) -> Submissions:
    return Submissions(db)


def step(number: int) -> Step:
    said = SpeechSegment(float(number), number + 0.5, f"Sentence {number}.")
    return Step(number * 16_000, [said], "en", float(number), 9.0)


async def pieces(*parts: bytes):
    for part in parts:
        yield part


async def test_a_key_makes_one_task_however_often_and_at_once_it_comes(tasks: AsrTasks) -> None:
    made = await asyncio.gather(*(tasks.create(task_id_of("k"), "auto", f"audio-{n}") for n in range(8)))
    assert len({task.audio_id for task in made}) == 1
    assert (await tasks.counts()) == {"queued": 1, "running": 0}
    assert task_id_of("k") != task_id_of("K")


async def test_a_task_has_one_holder_and_the_oldest_comes_first(tasks: AsrTasks) -> None:
    for key in ("a", "b"):
        await tasks.create(task_id_of(key), "auto", key)
    claims = await asyncio.gather(*(tasks.claim() for _ in range(6)))
    assert sorted(claim.task.audio_id for claim in claims if claim) == ["a", "b"]


async def test_a_holder_that_returns_late_changes_nothing(tasks: AsrTasks, clock: Clock) -> None:
    await tasks.create("t", "auto", "audio")
    late = await tasks.claim()
    assert late is not None
    await tasks.store_progress(late, step(1))
    assert await tasks.claim() is None
    clock.advance(timedelta(seconds=LEASE_S + 0.1))
    holder = await tasks.claim()
    assert holder is not None
    assert (holder.settled, [s.text for s in holder.task.segments]) == (16_000, ["Sentence 1."])
    for write in (
        tasks.store_progress(late, step(2)),
        tasks.complete(late),
        tasks.fail(late, FAULT),
        tasks.renew(late),
    ):
        with pytest.raises(ClaimLost):
            await write
    await tasks.store_progress(holder, step(2))
    await tasks.complete(holder)
    ended = await tasks.find("t")
    assert ended is not None
    assert (ended.state, [s.text for s in ended.segments]) == ("completed", ["Sentence 1.", "Sentence 2."])


async def test_a_renewed_lease_keeps_others_out(tasks: AsrTasks, clock: Clock) -> None:
    await tasks.create("t", "auto", "audio")
    claim = await tasks.claim()
    assert claim is not None
    for _ in range(3):
        clock.advance(timedelta(seconds=LEASE_S * 0.6))
        await tasks.renew(claim)
    assert await tasks.claim() is None


async def test_a_step_stored_twice_is_in_the_text_once(tasks: AsrTasks) -> None:
    await tasks.create("t", "auto", "audio")
    claim = await tasks.claim()
    assert claim is not None
    with crash_at("AsrTasks.store_progress:after"), pytest.raises(Crash):
        await tasks.store_progress(claim, step(1))
    claim.settled = 0  # the writer never heard that its write was applied
    await tasks.store_progress(claim, step(1))
    found = await tasks.find("t")
    assert found is not None
    assert [s.text for s in found.segments] == ["Sentence 1."]


async def test_a_task_given_back_is_free_at_once_and_keeps_its_text(tasks: AsrTasks) -> None:
    await tasks.create("t", "auto", "audio")
    claim = await tasks.claim()
    assert claim is not None
    await tasks.store_progress(claim, step(1))
    await tasks.give_back(claim)
    again = await tasks.claim()
    assert again is not None
    assert (again.settled, again.task.strikes) == (16_000, 0)


async def test_only_a_failure_that_may_pass_is_started_again(tasks: AsrTasks) -> None:
    for failure, revived in ((FAULT, True), (REFUSAL, False)):
        await tasks.create(failure.code, "auto", "first")
        claim = await tasks.claim()
        assert claim is not None
        await tasks.store_progress(claim, step(1))
        await tasks.fail(claim, failure)
        assert await tasks.revive(failure.code, "en", "second") is revived
        assert await tasks.revive(failure.code, "en", "third") is False
        task = await tasks.find(failure.code)
        assert task is not None
        assert (task.audio_id, len(task.segments)) == (("second", 0) if revived else ("first", 1))
        await tasks.claim()


async def test_each_death_of_a_holder_counts_until_there_is_progress(tasks: AsrTasks, clock: Clock) -> None:
    await tasks.create("t", "auto", "audio")
    for strikes in range(STRIKES + 1):
        claim = await tasks.claim()
        assert claim is not None
        assert claim.task.strikes == strikes
        clock.advance(timedelta(seconds=LEASE_S + 0.1))
    await tasks.store_progress(claim, step(1))
    clock.advance(timedelta(seconds=LEASE_S + 0.1))
    claim = await tasks.claim()
    assert claim is not None
    assert claim.task.strikes == 1


async def test_submitted_audio_comes_back_whole_and_can_be_removed_twice(submissions: Submissions) -> None:
    parts = [b"x" * 300_000, b"", b"y" * 700_000]
    audio_id, size = await submissions.store(pieces(*parts))
    assert size == 1_000_000
    assert await submissions.read(audio_id) == b"".join(parts)
    await submissions.remove(audio_id)
    await submissions.remove(audio_id)
    assert await submissions.read(audio_id) is None
    assert await submissions.read("nonsense") is None


async def test_an_upload_that_breaks_off_leaves_nothing(submissions: Submissions, db) -> None:
    async def broken():
        yield b"x" * 600_000
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await submissions.store(broken())
    assert await db["asr_audio.chunks"].count_documents({}) == 0


async def test_only_audio_that_nobody_needs_is_swept(
    tasks: AsrTasks, submissions: Submissions, db, monkeypatch
) -> None:
    monkeypatch.setattr("app.asr.submissions.GRACE", timedelta(seconds=-60))
    needed, _ = await submissions.store(pieces(b"needed"))
    left, _ = await submissions.store(pieces(b"left behind"))
    await db["asr_audio.chunks"].insert_one({"files_id": 1, "n": 0, "data": b"of another kind of id"})
    await tasks.create("t", "auto", needed)
    await sweep(tasks, submissions)
    assert await submissions.read(needed) == b"needed"
    assert await submissions.read(left) is None
    claim = await tasks.claim()
    assert claim is not None
    await tasks.complete(claim)
    await sweep(tasks, submissions)
    assert await submissions.read(needed) is None
