"""What may be stored of a step, and how large it may be."""

from collections.abc import Mapping
from typing import Any

import msgspec
from bson import encode

from kernel.errors import TooLarge
from kernel.writes import Document, plain

OUTPUT_LIMIT_BYTES = 64 * 1024
CHECKPOINT_LIMIT_BYTES = 16 * 1024

Value = Mapping[str, Any] | msgspec.Struct | None


def checked_output(step: str, value: Value) -> Document | None:
    """The output as a document. Raises TooLarge with the sizes."""
    return _checked(f"the output of step {step}", value, OUTPUT_LIMIT_BYTES)


def checked_checkpoint(step: str, value: Value) -> Document | None:
    """The checkpoint as a document. Raises TooLarge with the sizes."""
    return _checked(f"the checkpoint of step {step}", value, CHECKPOINT_LIMIT_BYTES)


def _checked(what: str, value: Value, limit: int) -> Document | None:
    document = plain(value)
    if document is not None and (size := len(encode(document))) > limit:
        raise TooLarge(f"{what} has {size} bytes; at most {limit} are allowed")
    return document
