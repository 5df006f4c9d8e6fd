"""Attempts as bars, and why a step waits."""

from datetime import UTC, datetime

from app.web.timeline import NARROWEST, WIDTH, bars, tries
from app.web.workflow_views import attempt_row, step_row, waiting_of, workflow_waits
from kernel.model import FAR_FUTURE

T1, T2 = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=UTC)


def attempt(**times: int):
    return attempt_row({"step": "capture", "run": 1, "attempt": 1, **times})


def test_the_longest_attempt_fills_the_width_and_the_others_share_its_scale():
    long, short = bars([attempt(queue_ms=500, external_ms=1500), attempt(activity_ms=1000)])
    assert [(piece.part, piece.x, piece.width) for piece in long.pieces] == [("queue", 0, 250), ("external", 250, 750)]
    assert short.pieces[0].width == WIDTH / 2


def test_a_part_that_took_any_time_stays_visible():
    (bar,) = bars([attempt(permit_ms=1, activity_ms=10_000)])
    assert bar.pieces[0].width == NARROWEST


def test_attempts_that_took_no_time_have_no_pieces():
    (bar,) = bars([attempt()])
    assert (bar.pieces, bar.total_ms) == ([], 0)


def test_earlier_attempts_of_a_step_lie_behind_its_latest_one_run_by_run():
    began = [("capture", 1, 1), ("capture", 1, 2), ("package", 1, 1), ("capture", 1, 3), ("capture", 2, 1)]
    rows = [attempt_row({"step": step, "run": run, "attempt": number}) for step, run, number in began]
    found = [(one.latest.attempt, [bar.attempt for bar in one.earlier]) for one in tries(bars(rows))]
    assert found == [(rows[3], [rows[0], rows[1]]), (rows[2], []), (rows[4], [])]


def test_a_step_that_waits_for_a_signal_names_it_and_its_fallback():
    wait = {"kind": "signal", "signal_type": "stream_settled", "wait_key": "s1"}
    found = waiting_of({"status": "waiting", "wait": wait, "suspended_at": T1, "due": T2})
    assert found
    assert (found.kind, found.text, found.since, found.until) == ("signal", "stream_settled of s1", T1, T2)


def test_a_refused_permit_is_the_reason_before_all_others():
    found = waiting_of({"status": "pending", "failures": 2, "traffic_reason": "limit", "traffic_since": T1, "due": T2})
    assert found
    assert (found.kind, found.since) == ("permit", T1)


def test_a_failed_step_that_will_be_tried_again_says_when():
    found = waiting_of({"status": "pending", "failures": 1, "due": T2})
    assert found
    assert (found.kind, found.until) == ("retry", T2)


def test_a_running_or_untouched_step_waits_for_nothing():
    assert waiting_of({"status": "running"}) is None
    assert waiting_of({}) is None


def test_a_wait_that_no_clock_ends_has_no_end():
    found = waiting_of({"status": "waiting", "wait": {"kind": "signal"}, "due": FAR_FUTURE})
    assert found
    assert found.until is None


def test_a_workflow_says_what_it_stands_still_for_even_where_no_step_of_it_waits():
    due: dict = {"status": "running", "claimable_time": T1, "claimed": False}
    failing = {"status": "failing", "finalizer_failures": 1, "updated_at": T1, "claimable_time": T2, "claimed": False}
    found = [workflow_waits(one, []) for one in (due, failing, due | {"parked_at": T2})]
    assert [(one.kind, one.since, one.until) for one in found if one] == [
        ("queue", T1, None),
        ("finalizer", T1, T2),
        ("parked", T2, None),
    ]
    assert workflow_waits(due | {"claimed": True}, []) is None
    assert workflow_waits(failing | {"claimed": True}, []) is None


def test_a_step_that_is_done_shows_no_error_that_it_got_over():
    shown = {status: step_row("pull", {"status": status, "error": "503"}).error for status in ("pending", "completed")}
    assert shown == {"pending": "503", "completed": None}
