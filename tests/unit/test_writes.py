"""Which faults of MongoDB pass."""

import pytest
from pymongo.errors import BulkWriteError, ConnectionFailure, DuplicateKeyError, OperationFailure, WriteError

from kernel.errors import StoreUnavailable
from kernel.writes import is_transient, wrapped

FULL = {"index": 0, "code": 8, "errmsg": "28: No space left on device"}
"""As mongod 6.0 answered on a disk that was full."""


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailure("away"),
        WriteError(f"{FULL['errmsg']}, full error: {FULL}", 8, FULL),
        BulkWriteError({"writeErrors": [FULL], "nInserted": 0}),
        OperationFailure("no room", 14031),
    ],
)
async def test_a_database_that_is_away_or_has_no_room_left_is_asked_again(error: Exception) -> None:
    assert is_transient(error)
    with pytest.raises(StoreUnavailable):
        async with wrapped():
            raise error


@pytest.mark.parametrize("error", [DuplicateKeyError("twice", 11000), OperationFailure("unknown", 8), ValueError("28")])
def test_what_would_be_refused_again_is_not(error: Exception) -> None:
    assert not is_transient(error)
