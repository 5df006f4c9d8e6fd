"""How long a provider asks us to wait."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from activities.adapters.retry_after import retry_after_s

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "600"}, 300.0),
        ({"retry-after": "1500ms"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_seconds_and_milliseconds_are_honoured_within_bounds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


@pytest.mark.parametrize(("after_s", "seconds"), [(42, 42.0), (0, 0.0), (-60, 0.0), (86_400, 300.0)])
def test_a_date_counts_from_the_answers_own_date(after_s: int, seconds: float) -> None:
    until = NOW + timedelta(seconds=after_s)
    headers = {"retry-after": format_datetime(until, usegmt=True), "date": format_datetime(NOW, usegmt=True)}
    assert retry_after_s(headers) == seconds


def test_a_date_without_the_answers_own_counts_from_now() -> None:
    assert retry_after_s({"retry-after": "Mon, 01 Dec 2025 12:00:00 GMT"}) == 0.0
