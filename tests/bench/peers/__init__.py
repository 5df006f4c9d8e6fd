"""The engines people would pick instead, each behind the same few calls as ours (`tests.bench.workload.Engine`).

`make bench-peers` installs them into `.baton/peers`: an environment `v` and npm's packages; PostgreSQL comes from the
system. Durable defaults everywhere (fsync on), everything on loopback, and every server ends with its engine.
"""
