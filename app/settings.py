"""Settings from `BATON_*` variables and `.env`, validated at start; a wrong one is named with its accepted form."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Seconds = Annotated[float, Meta(gt=0)]
Port = Annotated[int, Meta(ge=0, le=65535)]


class Suggested(msgspec.Struct, frozen=True):
    """A stream that the home page offers one click away."""

    title: str
    url: str
    language: str
    live_seconds: float


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting with its default. The variable is `BATON_` + the field's name in capitals."""

    data_dir: str = ".baton"
    """Folder of everything kept on this machine."""
    host: str = "127.0.0.1"
    """Address the web app listens on."""
    port: Port = 8000
    """Port of the web app; 0 takes a free one."""
    mongo_url: str = ""
    """External MongoDB (a replica set); empty: a private one is started by `baton demo`."""
    mongo_database: str = "baton"
    """Database name."""
    mongo_driver: Literal["motor", "pymongo"] = "motor"
    """`motor` or `pymongo`."""
    mongo_timeout_seconds: Seconds = 4.0
    """Bound on every MongoDB call."""
    redis_url: str = ""
    """External Redis or Valkey; empty: a private one is started by `baton demo`."""
    redis_prefix: str = "baton"
    """Prefix of every Redis key."""
    asr_url: str = ""
    """Address of the speech service; `baton demo` sets it."""
    asr_model: str = "base"
    """Whisper model: `base` from the installed wheels, a folder, or a name faster-whisper downloads."""
    asr_port: Port = 0
    """Port of `baton asr`."""
    transcription_base_url: str = ""
    """OpenAI-compatible endpoint whose `/audio/transcriptions` recognises speech instead of the speech service."""
    transcription_api_key: str = "none"
    """Key for that endpoint."""
    transcription_model: str = "whisper-1"
    """Model name sent to that endpoint."""
    openai_base_url: str = ""
    """OpenAI-compatible chat endpoint; `baton demo` sets the built-in writer's."""
    openai_api_key: str = "none"
    """Key for that endpoint."""
    openai_model: str = "baton-extractive"
    """Model name sent to that endpoint."""
    openai_context_tokens: Annotated[int, Meta(ge=500)] = 32_768
    """Tokens that the model reads at once; a longer talk is written in sections."""
    openai_tokenizer: str = ""
    """The model's `tokenizer.json`, to count with; empty: a safe bound."""
    openai_prices: Annotated[str, Meta(pattern=r"^(\d+(\.\d+)?/\d+(\.\d+)?)?$")] = ""
    """What a million tokens cost, `0.15/0.60` for prompt and answer, in any currency; empty: unknown."""
    writer_port: Port = 0
    """Port of `baton writer`."""
    writer_chars_per_second: Annotated[float, Meta(ge=0)] = 400.0
    """Pace at which the built-in writer streams; 0: as fast as it can."""
    streams_port: Port = 0
    """Port of `baton streams`, the demo's live origin."""
    allow_hosts: str = ""
    """`host:port` pairs, comma separated, that may be fetched although they are private."""
    suggested_streams: list[Suggested] = []
    """JSON list of streams that the home page offers: title, url, language, live_seconds."""
    worker_name: str = ""
    """Name of this worker in the operator's views; empty: host and pid."""
    worker_slots: Annotated[int, Meta(ge=1, le=256)] = 8
    """Workflows one worker runs at once."""
    lease_seconds: Seconds = 15.0
    """Execution lease; renewed every third of it."""
    poll_seconds: Seconds = 5.0
    """Longest time a worker goes without looking for work."""
    scan_seconds: Seconds = 30.0
    """Period of the repair scan."""
    permit_lease_seconds: Seconds = 30.0
    """Lease of a permit."""
    quota_per_day: Annotated[int, Meta(ge=1)] = 100
    """Summaries a person may start in 24 hours."""
    upload_megabytes: Annotated[int, Meta(ge=1)] = 500
    """Largest file that may be uploaded."""
    streams_per_person: Annotated[int, Meta(ge=1)] = 50
    """Streams a person may wait for at once."""
    metrics: Literal["off", "loopback", "token"] = "off"
    """Who may read `/metrics`: nobody, this machine (only where no proxy on it serves others), who has the token."""
    metrics_token: str = ""
    """The token, for `token`."""
    metrics_port: Port = 0
    """Port on which a worker answers `/metrics`; 0: none."""
    log_format: Literal["text", "json"] = "text"
    """Log lines as text, or as one JSON object each."""
    secret: str = ""
    """Signs cookies; empty: generated on first run into the data folder."""


class SettingsError(Exception):
    """A setting is not of its accepted form."""


def read_env_file(path: Path) -> dict[str, str]:
    """`NAME=value` lines; blank lines and `#` comments are passed over."""
    if not path.is_file():
        return {}
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, value in pairs}


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from the environment, over those of `.env`. Raises SettingsError with the name and accepted form."""
    source = {**read_env_file(Path(".env")), **(os.environ if environ is None else environ)}
    values = {}
    for field in msgspec.structs.fields(Settings):
        name = f"BATON_{field.name.upper()}"
        if name in source:
            values[field.name] = _parse(name, source[name], field.type)
    settings = Settings(**values)
    if settings.metrics == "token" and not settings.metrics_token:
        raise SettingsError("BATON_METRICS='token' is not accepted: Expected BATON_METRICS_TOKEN to be set as well")
    return settings


def _parse(name: str, text: str, kind: Any) -> Any:
    try:
        if kind == list[Suggested]:
            return msgspec.json.decode(text or "[]", type=kind)
        return msgspec.convert(text, kind, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise SettingsError(f"{name}={text!r} is not accepted: {error}") from error
