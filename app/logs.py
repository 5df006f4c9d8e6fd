"""How a process writes its log to standard error: as text for people, or as one JSON object a line for programs."""

import logging
from datetime import UTC, datetime
from typing import Literal

import msgspec

from kernel.log_fields import log_fields

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
TOO_CHATTY = ("httpx", "httpx2")


class JsonLines(logging.Formatter):
    """`time` (UTC), `level`, `logger`, `message`, `error` with the traceback, and where in the work it was said."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **log_fields(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(said, enc_hook=str).decode()


def log_as(form: Literal["text", "json"]) -> None:
    """Set logging up, once per process."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for client in TOO_CHATTY:
        logging.getLogger(client).setLevel(logging.WARNING)
