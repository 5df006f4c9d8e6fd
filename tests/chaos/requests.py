"""What callers ask for: business objects of every shape, drawn from a generator of random numbers."""

from collections.abc import Iterator
from random import Random

import msgspec

SHAPES = {
    "linear": 12,
    "retry": 8,
    "skip": 4,
    "wave": 8,
    "sleep": 12,
    "yield": 6,
    "patient": 6,
    "fanout": 5,
    "failing": 6,
    "replay": 10,
    "withdrawn": 5,
    "narrow": 10,
    "brisk": 7,
    "wide": 8,
    "blocking": 1,
    "threaded": 3,
    "streaming": 6,
    "poison": 0.5,
}
"""Shape → how often it is asked for. Every `fanout` brings its listeners with it."""

REMOVED = 0.12
"""Share of objects that their owner removes while they are worked on."""
LONGEST_WORK_S = 1.5
TENANTS = "abc"
BELLS = 2
"""How many signals a listener waits for, one after the other: the first by a fan-out, the second by a producer."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One business object to accept. Times are seconds after it was accepted; None: never."""

    object_id: str
    shape: str
    tenant: str
    priority: int
    rounds: int = 1
    remove_after_s: float | None = None
    ready_after_s: float | None = None  # when the fact is true that a `patient` waits for
    told: bool = False  # whether anybody rings for that
    ring_after_s: float | None = None  # when a listener's second bell rings
    takes_s: float = 0.0  # how long each piece of its work takes
    delay_s: float = 0.0  # how long a fan-out waits before it begins
    targets: tuple[str, ...] = ()


def drawn(random: Random, name: str) -> Iterator[Request]:
    """Requests without end. `name` makes their ids this caller's own."""
    number = 0
    while True:
        shape = random.choices([*SHAPES], [*SHAPES.values()])[0]
        number += 1
        object_id = f"{shape}-{name}-{number}"
        if shape == "fanout":
            yield from _group(random, object_id)
        else:
            yield _one(random, shape, object_id)


def _one(random: Random, shape: str, object_id: str) -> Request:
    return Request(
        object_id=object_id,
        shape=shape,
        tenant=random.choice(TENANTS),
        priority=random.randint(0, 3),
        rounds=2 if shape == "replay" else 1,
        remove_after_s=random.uniform(0.0, 4.0) if random.random() < REMOVED else None,
        ready_after_s=random.uniform(0.0, 4.0) if shape == "patient" else None,
        told=random.random() < 0.5,
        takes_s=random.uniform(0.0, LONGEST_WORK_S) if random.random() < 0.7 else 0.0,
        ring_after_s=random.uniform(0.0, 6.0) if shape == "listener" else None,
    )


def _group(random: Random, object_id: str) -> Iterator[Request]:
    """A fan-out, accepted first so that whoever listens will be told; it may begin before or after they do."""
    listeners = [f"listener-{object_id}-{place}" for place in range(random.randint(2, 5))]
    fanout = msgspec.structs.replace(
        _one(random, "fanout", object_id),
        targets=tuple(listeners),
        delay_s=random.uniform(0.0, 3.0),
        remove_after_s=None,
    )
    yield fanout
    for listener in listeners:
        yield _one(random, "listener", listener)
