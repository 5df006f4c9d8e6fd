"""The grammar of conditional writes: literals, the marks every state change leaves, and driver errors wrapped once.

Values of callers go into update pipelines as `$literal`, so that nothing in them is read as an expression and a map
replaces the old one instead of being merged into it.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from secrets import token_hex
from typing import Any

import msgspec
from pymongo.errors import (
    ConnectionFailure,
    ExecutionTimeout,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)

from kernel.clock import Clock
from kernel.errors import StoreUnavailable

Document = dict[str, Any]
OUT_OF_DISK_SPACE = 14031
NO_SPACE = "No space left on device"
"""What mongod answers, with the code of an unknown error, from when its disk is full until it ends itself."""


def literal(value: Any) -> Document:
    """`value` as a constant of an aggregation expression."""
    return {"$literal": value}


def plain(value: Mapping[str, Any] | msgspec.Struct | None) -> Document | None:
    """A Struct or mapping as a document; datetimes stay datetimes."""
    return None if value is None else msgspec.to_builtins(value, builtin_types=(bytes, datetime))


def new_token() -> str:
    """A fresh claim token or commit id."""
    return token_hex(8)


def changed(clock: Clock, commit: str) -> Document:
    """What every accepted state change but a claim leaves on an instance."""
    return {**counted(clock), "commit": literal(commit)}


def counted(clock: Clock) -> Document:
    """What a claim leaves, too. Not its commit id: that and the token guard a holder's writes each for itself."""
    return {"revision": {"$add": ["$revision", 1]}, "updated_at": clock.now}


def due_now(clock: Clock) -> Document:
    """Filter: `claimable_time` has come. Uses the index on status and claimable_time."""
    return {"$expr": {"$lte": ["$claimable_time", clock.now]}}


def is_transient(error: BaseException) -> bool:
    """Whether MongoDB may well answer the next time."""
    if isinstance(error, StoreUnavailable | ConnectionFailure | ExecutionTimeout | NetworkTimeout | WTimeoutError):
        return True
    if isinstance(error, OperationFailure) and (error.code == OUT_OF_DISK_SPACE or NO_SPACE in str(error)):
        return True
    return isinstance(error, PyMongoError) and (error.timeout or error.has_error_label("RetryableWriteError"))


@asynccontextmanager
async def wrapped() -> AsyncGenerator[None]:
    """Driver errors become StoreUnavailable where they are passing, with the cause kept."""
    try:
        yield
    except PyMongoError as error:
        if is_transient(error):
            raise StoreUnavailable(f"MongoDB did not answer: {_first_line(error)}") from error
        raise


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
