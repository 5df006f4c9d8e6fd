"""The compact frame codec."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.frames import NOTICE, TERMINAL, TEXT, VERSION, UnknownFrameVersion, decode, encode

kinds = st.integers(0, 15)


@given(kinds, st.binary(max_size=300))
def test_a_frame_comes_back_as_it_went(kind: int, payload: bytes) -> None:
    frame = decode(encode(kind, payload))
    assert (frame.kind, frame.payload) == (kind, payload)


@given(kinds, st.binary(max_size=300))
def test_the_header_is_one_byte(kind: int, payload: bytes) -> None:
    assert encode(kind, payload)[1:] == payload


@given(st.integers(0, 255).filter(lambda header: header >> 4 != VERSION), st.binary(max_size=50))
def test_every_other_version_is_refused(header: int, payload: bytes) -> None:
    with pytest.raises(UnknownFrameVersion, match=f"version {header >> 4} "):
        decode(bytes((header,)) + payload)


def test_the_bytes_of_the_agreed_kinds_stay_as_they_are() -> None:
    assert encode(TEXT, "né".encode()) == b"\x11n\xc3\xa9"
    assert encode(NOTICE) == b"\x12"
    assert encode(TERMINAL, b"completed") == b"\x15completed"


def test_an_empty_record_is_refused() -> None:
    with pytest.raises(UnknownFrameVersion, match="header byte is missing"):
        decode(b"")


@pytest.mark.parametrize("kind", [-1, 16, 255])
def test_a_kind_beyond_four_bits_is_refused(kind: int) -> None:
    with pytest.raises(ValueError, match="0 to 15"):
        encode(kind)
