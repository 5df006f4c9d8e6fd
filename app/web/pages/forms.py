"""Forms arrive as text: converting them says which field has a value that is not accepted."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from app.web.problems import Problem

T = TypeVar("T", bound=msgspec.Struct)


def read_form(fields: Mapping[str, Any], kind: type[T]) -> T:
    """The form as a Struct. Raises the problem `invalid_request`."""
    try:
        return msgspec.convert(dict(fields), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Problem("invalid_request", f"The form cannot be taken as it is: {error}") from error
