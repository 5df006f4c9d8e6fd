"""The speech service: durable transcription tasks behind a small HTTP API. `server.run` is its entry."""
