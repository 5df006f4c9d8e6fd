"""The HTTP API of the speech service. Errors are `{"status_code", "detail", "code"}` with a stable code."""

import logging
from datetime import datetime
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.params import FromPath, FromQuery

from activities.payloads import SpeechStatus
from app.asr.audio import RATE
from app.asr.intake import Intake, Refused
from app.asr.model import SpeechModel
from app.asr.tasks import AsrTask, AsrTasks
from kernel.errors import StoreUnavailable

LARGEST_BYTES = 512 * 1024 * 1024
log = logging.getLogger(__name__)


class TaskView(SpeechStatus, frozen=True, kw_only=True):
    """A task as clients see it. `duration_s` is what the audio's container states, if it states anything."""

    code: str | None = None
    duration_s: float | None = None
    created_at: datetime


class Health(msgspec.Struct, frozen=True):
    """Whether tasks are worked on; if not, why."""

    status: str
    model: str
    reason: str | None = None
    queued: int | None = None
    running: int | None = None


def view(task: AsrTask) -> TaskView:
    """What clients are told of a task."""
    failure = task.failure
    return TaskView(
        task_id=task.task_id,
        state=task.state,
        progress=_percent(task),
        language=task.language,
        segments=task.segments,
        decoded_s=task.decoded_s,
        duration_s=task.stated_s,
        error=failure.text if failure else None,
        code=failure.code if failure else None,
        retryable=failure.retryable if failure else False,
        created_at=task.created_at,
    )


def _percent(task: AsrTask) -> float:
    if task.state == "completed":
        return 100.0
    return min(99.0, round(100 * task.settled / RATE / task.stated_s, 1)) if task.stated_s else 0.0


@post("/tasks", request_max_body_size=LARGEST_BYTES)
async def submit(
    request: Request[Any, Any, Any], intake: Intake, language: FromQuery[str] = "auto"
) -> Response[TaskView]:
    """Submit audio. The same `Idempotency-Key` always gives the same task."""
    task, new = await intake.submit(request.headers.get("idempotency-key", ""), language, request.stream())
    return Response(view(task), status_code=201 if new else 200)


@get("/tasks/{task_id:str}")
async def find(intake: Intake, task_id: FromPath[str]) -> TaskView:
    """A task with everything recognised so far."""
    return view(await intake.find(task_id))


@get("/healthz")
async def health(tasks: AsrTasks, model: SpeechModel) -> Response[Health]:
    """Whether tasks are taken and worked on; 503 with the reason where they are not."""
    if not await model.ready():
        return Response(Health("degraded", model.name, model.problem), status_code=503)
    try:
        counts = await tasks.counts()
        return Response(Health("ok", model.name, queued=counts["queued"], running=counts["running"]))
    except StoreUnavailable as error:
        return Response(Health("degraded", model.name, str(error)), status_code=503)


def create_app(intake: Intake, tasks: AsrTasks, model: SpeechModel) -> Litestar:
    """The application."""
    parts = {"intake": intake, "tasks": tasks, "model": model}
    return Litestar(
        [submit, find, health],
        dependencies={name: _given(part) for name, part in parts.items()},
        exception_handlers={Exception: _answer},
        openapi_config=None,
        logging_config=None,
    )


def _given(part: object) -> Provide:
    def provide() -> Any:
        return part

    return Provide(provide, sync_to_thread=False, use_cache=True)


def _answer(_: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    status, code, text = _named(error)
    return Response({"status_code": status, "detail": text, "code": code}, status_code=status)


def _named(error: Exception) -> tuple[int, str, str]:
    match error:
        case Refused():
            return error.status, error.code, str(error)
        case StoreUnavailable():
            return 503, "store_unavailable", "The database does not answer at the moment. Try again in a few seconds."
        case HTTPException(status_code=413):
            return 413, "too_large", f"The audio is larger than {LARGEST_BYTES >> 20} MiB. Submit it in parts."
        case HTTPException(status_code=status) if status < 500:
            return status, "not_found" if status == 404 else "malformed_request", error.detail
    log.error("a request failed", exc_info=error)
    return 500, "internal_error", "The speech service failed on this request; its log says how."
