"""Where in the work a log line comes from: fields that follow the running task, and the tasks and threads it starts.

The kernel sets them around a claim and around each call of an activity; whoever formats log lines reads them.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_FIELDS: ContextVar[Mapping[str, object]] = ContextVar("log_fields", default={})  # noqa: B039 - never changed in place


def log_fields() -> Mapping[str, object]:
    """The fields that hold here: under a claim `workflow_id`, `biz_key`, `worker`; in an activity `step`, `attempt`."""
    return _FIELDS.get()


@contextmanager
def logged_with(**fields: object) -> Generator[None]:
    """Add fields while the body runs."""
    token = _FIELDS.set({**_FIELDS.get(), **fields})
    try:
        yield
    finally:
        _FIELDS.reset(token)
