"""The bytes of server-sent events."""

from app.web import sse
from app.web.sse import Event


def test_an_event_has_its_name_its_data_and_ends_with_a_blank_line():
    assert sse.encode(Event("state", b'{"a":1}')) == b'event: state\ndata: {"a":1}\n\n'


def test_only_an_event_with_an_id_moves_the_readers_position():
    assert b"\nid: 17-3\n" in sse.encode(Event("text", b"{}", "17-3"))
    assert b"id:" not in sse.encode(Event("reset"))


def test_a_comment_is_not_a_data_line():
    assert sse.COMMENT.startswith(b":")
    assert b"data" not in sse.COMMENT
    assert sse.COMMENT.endswith(b"\n\n")
