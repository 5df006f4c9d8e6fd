"""What tells a broadcast that has begun again from the one that was recorded."""

import pytest

from activities.comeback import goes_on_after
from activities.payloads import PlaylistSnapshot, Tail
from tests.unit.story import window

TAIL = Tail(9, "9.ts")


@pytest.mark.parametrize(
    ("listed", "again"),
    [
        pytest.param(window(5, 9, ended=True), False, id="the recorded list"),
        pytest.param(window(0, -1, ended=True), False, id="an empty list"),
        pytest.param(window(5, 9), False, id="a list that stands still"),
        pytest.param(window(0, 2), True, id="live from its first segment again"),
        pytest.param(window(8, 12), True, id="live and gone on"),
        pytest.param(window(30, 35), True, id="live and far beyond"),
        pytest.param(window(0, 3, ended=True), True, id="another list that is over as well"),
    ],
)
def test_only_a_list_with_something_unseen_is_another_broadcast(listed: PlaylistSnapshot, again: bool) -> None:
    assert goes_on_after(TAIL, listed) is again
