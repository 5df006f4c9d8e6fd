"""How long a provider asks us to wait, from its answer's headers. Pure; bounded, whatever the provider says."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_S = 300.0
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s)?$")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait (0 to 300), or None where the answer does not say.

    Read are `retry-after-ms`, and `retry-after` in seconds or as a date (against the answer's own date).
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    wait = milliseconds / 1000 if milliseconds is not None else _seconds(headers)
    return None if wait is None or not math.isfinite(wait) else min(max(wait, 0.0), LONGEST_S)


def _seconds(headers: Mapping[str, str]) -> float | None:
    text = headers.get("retry-after")
    number = _number(text)
    if number is not None or text is None:
        return number
    until = _date(text)
    return (until - (_date(headers.get("date")) or datetime.now(UTC))).total_seconds() if until else None


def _number(text: str | None) -> float | None:
    found = _NUMBER.match((text or "").strip())
    if found is None:
        return None
    return float(found[1]) / (1000 if found[2] == "ms" else 1)


def _date(text: str | None) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
