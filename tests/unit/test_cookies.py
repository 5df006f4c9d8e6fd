"""Session cookies: only what was signed with the secret counts, and only until it runs out."""

import pytest

from app.web import cookies
from app.web.cookies import Session

SECRET = "a secret of this test"
SESSION = Session("u_1", 1, 1000)


def test_a_signed_session_comes_back():
    assert cookies.verify(cookies.sign(SESSION, SECRET), SECRET, now_s=999) == SESSION


def test_a_session_that_has_run_out_does_not_count():
    assert cookies.verify(cookies.sign(SESSION, SECRET), SECRET, now_s=1000) is None


def test_another_secret_does_not_open_it():
    assert cookies.verify(cookies.sign(SESSION, SECRET), "another", now_s=0) is None


def test_no_changed_character_goes_unnoticed():
    value = cookies.sign(SESSION, SECRET)
    for place, letter in enumerate(value):
        changed = value[:place] + ("A" if letter != "A" else "B") + value[place + 1 :]
        assert cookies.verify(changed, SECRET, now_s=0) is None, changed


@pytest.mark.parametrize("value", ["", ".", "a.b", "…", "a" * 5000, "e30=.deadbeef"])
def test_any_other_text_is_no_session(value):
    assert cookies.verify(value, SECRET, now_s=0) is None


def test_an_empty_secret_signs_nothing():
    with pytest.raises(ValueError, match="BATON_SECRET"):
        cookies.sign(SESSION, "")
