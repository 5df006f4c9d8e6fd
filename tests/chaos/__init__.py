"""Real processes under random faults (`make chaos`), and afterwards a look at every effect they had.

Read in this order:

- `__main__` one run: begin, disturb, drain, judge, report.
- `plan` draws faults and processes' lives from the seed; `mayhem` carries them out; `crew` keeps every part played;
  `servers` and `line` are the run's own MongoDB and Valkey, and the wire to MongoDB; `wall_clock`, `death`: a process
  whose clock is wrong, and one that dies at a boundary.
- `requests` and `producer` are the callers, `worker` the kernel's worker, `shapes` the workflows, `ledger` their
  business side, which counts each effect; `world` joins these in a process.
- `history` reads MongoDB's change stream and holds each write against `transitions`; `witness` and `windows` do the
  same for permits; `drain` waits for the end; `verdict` compares what is there with what must be; `report` prints it.
"""
