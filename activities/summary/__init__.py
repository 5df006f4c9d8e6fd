"""The `summary` workflow: one person's summary of one session, from the subscription to the finished text."""
