"""Ending a task that does not listen at first."""

import asyncio

from kernel.tasks import end


async def deaf(times: int, heard: list[int]) -> None:
    """Swallows so many cancellations, as a client does whose fault arrives together with one."""
    while len(heard) <= times:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append(len(heard))
            if len(heard) > times:
                raise


async def test_a_swallowed_cancellation_is_repeated() -> None:
    heard: list[int] = []
    task = asyncio.create_task(deaf(2, heard))
    await asyncio.sleep(0)
    await end(task, again_s=0.01)
    assert task.cancelled()
    assert heard == [0, 1, 2]


async def test_a_call_may_clean_up_in_peace() -> None:
    tasks = [asyncio.create_task(deaf(times, [])) for times in (0, 1)]
    await asyncio.sleep(0)
    await end(*tasks, within_s=0.05)
    assert [task.done() for task in tasks] == [True, False]
    await end(*tasks, again_s=0.01)


async def test_what_ended_long_ago_is_left_alone() -> None:
    async def failing() -> None:
        raise ValueError("for its own reason")

    task = asyncio.create_task(failing())
    await asyncio.wait({task})
    await end(task)
    assert isinstance(task.exception(), ValueError)
