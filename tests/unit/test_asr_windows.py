"""Where speech is cut, and how the model's tokens become timed text."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.payloads import SpeechSegment
from app.asr.audio import RATE
from app.asr.tokens import loops, timed
from app.asr.whisper import without_echo
from app.asr.windows import LONGEST_S, PAUSE_S, WindowCutter, grouped

FIRST_TIME = 50_364
GENTLE = np.random.default_rng(1)


def at(seconds: float) -> int:
    return FIRST_TIME + round(seconds / 0.02)


@given(st.lists(st.tuples(st.integers(0, 10 * RATE), st.integers(1, 28 * RATE)), max_size=30))
def test_windows_hold_all_speech_once_and_no_long_pause(steps: list[tuple[int, int]]) -> None:
    spans, end = [], 0
    for pause, length in steps:
        spans.append((end + pause, end + pause + length))
        end = spans[-1][1]
    groups = grouped(spans)
    assert all(any(first <= start and stop <= last for first, last in groups) for start, stop in spans)
    assert all(last - first <= LONGEST_S * RATE for first, last in groups)
    assert all(one[1] <= other[0] for one, other in pairwise(groups))
    assert len(groups) <= len(spans)


def test_a_long_pause_ends_a_window() -> None:
    second = round((5 + PAUSE_S + 0.1) * RATE)
    assert grouped([(0, 5 * RATE), (second, second + RATE)]) == [(0, 5 * RATE), (second, second + RATE)]
    assert grouped([(0, 5 * RATE), (6 * RATE, 7 * RATE)]) == [(0, 7 * RATE)]


@pytest.mark.parametrize(
    "sound",
    [
        np.zeros(20 * RATE),
        GENTLE.normal(size=20 * RATE) * 1e-4,
        GENTLE.normal(size=20 * RATE) * 0.2,
        0.4 * np.sin(2 * np.pi * 50 * np.arange(20 * RATE) / RATE),
    ],
    ids=["silence", "near-silence", "noise", "hum"],
)
def test_what_is_no_speech_is_no_window(sound: np.ndarray) -> None:
    cutter = WindowCutter()
    assert [cutter.push(part) for part in np.array_split(sound.astype(np.float32), 4)] == [[]] * 4
    assert cutter.finish() == []
    assert cutter.settled == 20 * RATE


def test_time_tokens_open_and_close_pieces() -> None:
    tokens = [at(0), 7, 8, at(2.5), at(3), 9, at(4), 10, at(5.5)]
    assert timed(tokens, FIRST_TIME, 6.0, cut_off=False) == (
        [(0.0, 2.5, [7, 8]), (3.0, 4.0, [9]), (4.0, 5.5, [10])],
        None,
    )


def test_a_piece_that_is_not_closed_lasts_to_the_end() -> None:
    assert timed([at(0), 7], FIRST_TIME, 6.0, cut_off=False) == ([(0.0, 6.0, [7])], None)
    assert timed([at(0), 7, at(2), at(2), 8], FIRST_TIME, 6.0, cut_off=False).pieces[-1] == (2.0, 6.0, [8])


def test_what_the_model_did_not_get_to_is_heard_again() -> None:
    assert timed([at(0), 7, at(2), at(2), 8, 9], FIRST_TIME, 20.0, cut_off=True) == ([(0.0, 2.0, [7])], 2.0)
    assert timed([at(0), 7, at(12), at(12)], FIRST_TIME, 20.0, cut_off=False) == ([(0.0, 12.0, [7])], 12.0)


def test_a_window_that_gives_nothing_is_not_heard_for_ever() -> None:
    assert timed([7] * 200, FIRST_TIME, 20.0, cut_off=True) == ([(0.0, 20.0, [7] * 200)], None)
    assert timed([at(0), at(0)], FIRST_TIME, 20.0, cut_off=False) == ([], None)


@given(st.lists(st.integers(1, 20) | st.integers(FIRST_TIME, FIRST_TIME + 1500), max_size=60), st.booleans())
def test_times_never_run_backwards(tokens: list[int], cut_off: bool) -> None:
    pieces, rest_s = timed(tokens, FIRST_TIME, 28.0, cut_off=cut_off)
    times = [moment for piece in pieces for moment in (piece.start_s, piece.end_s)]
    assert times == sorted(times)
    assert all(0 <= moment <= 28.0 for moment in times)
    assert rest_s is None or 0 <= rest_s <= 27.0


def test_one_phrase_over_and_over_is_a_loop() -> None:
    assert loops("Thank you for watching. " * 10)
    assert not loops("Every step of the job leaves a record in a database before the next step begins.")
    assert not loops("No, no, no.")


def test_a_sentence_said_twice_stays_and_a_third_time_goes() -> None:
    said = [SpeechSegment(n, n + 1, text) for n, text in enumerate(["Yes.", "Yes.", "Yes.", "Yes.", "No.", "Yes."])]
    assert [segment.text for segment in without_echo(said)] == ["Yes.", "Yes.", "No.", "Yes."]
