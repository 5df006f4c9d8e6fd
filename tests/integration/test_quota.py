"""A person's quota on a real MongoDB: one hold per object and round, whatever is repeated or raced."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from activities.adapters.quota import DailyQuotaSpent, QuotaRecords
from activities.ports import QuotaExhausted
from kernel import Clock, StaleRound


@pytest.fixture
def quota(db: Any, clock: Clock) -> QuotaRecords:
    return QuotaRecords(db, clock, per_day=3)


async def test_a_hold_taken_many_times_at_once_counts_once(quota: QuotaRecords) -> None:
    await asyncio.gather(*(quota.take("li", "sum_1:1") for _ in range(10)))
    await quota.take("li", "sum_1:2")
    await quota.take("li", "sum_2:1")
    with pytest.raises(DailyQuotaSpent) as caught:
        await quota.take("li", "sum_3:1")
    assert isinstance(caught.value, QuotaExhausted)
    assert 86_000 < caught.value.retry_after_s <= 86_400
    assert "3 summaries" in str(caught.value)
    await quota.take("wang", "sum_3:1")


async def test_of_many_at_once_no_more_are_let_in_than_allowed(quota: QuotaRecords) -> None:
    takes = [quota.take("li", f"sum_{number}:1") for number in range(10)]
    outcomes = await asyncio.gather(*takes, return_exceptions=True)
    assert sum(outcome is None for outcome in outcomes) == 3


async def test_what_is_given_back_can_be_used_by_others_but_not_taken_again(quota: QuotaRecords) -> None:
    for number in range(3):
        await quota.take("li", f"sum_{number}:1")
    await quota.give_back("li", "sum_0:1")
    await quota.give_back("li", "sum_0:1")
    with pytest.raises(StaleRound):
        await quota.take("li", "sum_0:1")
    await quota.take("li", "sum_0:2")
    with pytest.raises(DailyQuotaSpent):
        await quota.check("li")


async def test_a_late_worker_takes_nothing_for_a_round_that_gave_back_before_it_held(quota: QuotaRecords) -> None:
    await quota.give_back("li", "sum_1:1")
    with pytest.raises(StaleRound):
        await quota.take("li", "sum_1:1")
    await quota.check("li")


async def test_a_day_later_everything_is_free_again(quota: QuotaRecords, clock: Clock) -> None:
    for number in range(3):
        await quota.take("li", f"sum_{number}:1")
    clock.advance(timedelta(hours=23))
    with pytest.raises(DailyQuotaSpent, match="60 minutes"):
        await quota.check("li")
    clock.advance(timedelta(hours=2))
    await quota.check("li")
    await quota.take("li", "sum_4:1")


async def test_somebody_new_has_everything_left(quota: QuotaRecords) -> None:
    await quota.check("nobody")
