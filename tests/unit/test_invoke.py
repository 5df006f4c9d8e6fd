"""The door into business code: a time-out for each call, and no call left running behind it."""

import asyncio

import pytest

from kernel.invoke import ActivityAborted, StepTimeout, invoke

SOON_S = 0.01


async def test_a_call_that_is_too_slow_has_ended_before_the_time_out_is_told() -> None:
    cleaned_up = False

    async def slow() -> None:
        nonlocal cleaned_up
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(SOON_S)
            cleaned_up = True

    with pytest.raises(StepTimeout, match=r"within 0\.01 s"):
        await invoke(slow(), SOON_S)
    assert cleaned_up


async def test_a_call_that_answers_at_the_last_moment_is_believed() -> None:
    async def late() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done after all"
        raise AssertionError

    assert await invoke(late(), SOON_S) == "done after all"


async def test_a_call_that_cancels_itself_is_a_failure_of_its_own() -> None:
    async def aborted() -> None:
        raise asyncio.CancelledError

    with pytest.raises(ActivityAborted):
        await invoke(aborted(), 60.0)


async def test_who_is_cancelled_while_calling_sees_the_call_end_first() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def working() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(SOON_S)
            ended.set()

    calling = asyncio.create_task(invoke(working(), 60.0))
    await began.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert ended.is_set()


async def test_errors_and_results_pass_through() -> None:
    async def broken() -> None:
        raise LookupError("nothing there")

    async def fine() -> int:
        return 7

    with pytest.raises(LookupError, match="nothing there"):
        await invoke(broken(), 60.0)
    assert await invoke(fine(), 60.0) == 7
