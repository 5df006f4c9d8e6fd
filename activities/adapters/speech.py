"""The client of our own speech service. Submitting is idempotent: the same key always leads to the same task."""

import httpx
import msgspec

from activities.payloads import SpeechStatus
from activities.ports import SpeechFault, SpeechRefused

TIMEOUT = httpx.Timeout(30.0, connect=5.0)
PASSING = {408, 425, 429}  # besides all of 5xx
MAX_DETAIL = 300


class _Failure(msgspec.Struct):
    """How the service says no."""

    detail: str = ""
    code: str = ""


class AsrClient:
    """A `Speech` provider over the service's HTTP API."""

    name = "baton-asr"
    whole = True

    def __init__(self, base_url: str) -> None:
        self._client = httpx.AsyncClient(base_url=base_url, timeout=TIMEOUT, trust_env=False)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def submit(self, key: str, audio: bytes, *, language: str | None) -> str:
        """Submit audio under an idempotency key; the same key gives the same task id."""
        answer = await self._send(
            "POST",
            "/tasks",
            params={"language": language or "auto"},
            headers={"Idempotency-Key": key, "Content-Type": "application/octet-stream"},
            content=audio,
        )
        if answer.status_code not in (200, 201):
            raise _failure(answer)
        return _status(answer).task_id

    async def poll(self, task_id: str) -> SpeechStatus:
        """Ask for the task. One that the service does not know (any more) has failed, and may be submitted again."""
        answer = await self._send("GET", f"/tasks/{task_id}")
        if answer.status_code == 404:
            reason = "The speech service does not know this task any more."
            return SpeechStatus(task_id=task_id, state="failed", error=reason, retryable=True)
        if answer.status_code != 200:
            failure = _failure(answer)
            raise failure if isinstance(failure, SpeechFault) else SpeechFault(str(failure))
        return _status(answer)

    async def _send(self, method: str, path: str, **options: object) -> httpx.Response:
        try:
            return await self._client.request(method, path, **options)  # pyright: ignore[reportArgumentType] - httpx's own
        except httpx.TimeoutException as error:
            raise SpeechFault("The speech service did not answer in time.") from error
        except httpx.TransportError as error:
            raise SpeechFault(f"The speech service could not be reached ({error or type(error).__name__}).") from error


def _status(answer: httpx.Response) -> SpeechStatus:
    try:
        return msgspec.json.decode(answer.content, type=SpeechStatus)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise SpeechFault(f"The speech service answered with something that is no task ({error}).") from error


def _failure(answer: httpx.Response) -> SpeechFault | SpeechRefused:
    """A refusal for what another try cannot change; a fault for all else, such as a model that is not there yet."""
    status = answer.status_code
    try:
        said = msgspec.json.decode(answer.content, type=_Failure)
    except (msgspec.DecodeError, msgspec.ValidationError):
        said = _Failure()
    words = f"{said.code}: {said.detail}".strip(": ")[:MAX_DETAIL] or "without a reason"
    if 400 <= status < 500 and status not in PASSING:
        return SpeechRefused(f"The speech service refused the audio ({status}, {words}).")
    return SpeechFault(f"The speech service is not ready ({status}, {words}).")
