"""What a seed decides before the first event: who, what, how long, and which faults are on.

Each seed switches on a random subset of the faults ("swarm"): all of them together would hide what
some of them alone can do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

# Faults of single messages: a probability or a duration, active until the world heals.
SLOW = "slow network"  # every message, up to a tenth of a TTL
JITTER = "jitter"  # some messages, up to half a TTL
LATE = "late copy"  # a few messages, up to 2.5 TTL: they arrive after everybody gave up
DROP = "request lost"
DROP_REPLY = "reply lost"
DUPLICATE = "duplicate"  # executed a second time, later
# Faults that happen at an instant.
PARTITION = "partition"
RESET = "connection reset"
CLIENT_PAUSE = "client pause"
EARLY_PAUSE = "client pause after grant"
CLIENT_CRASH = "client crash"
SERVER_PAUSE = "server pause"
SERVER_RESTART = "server restart"
DATA_LOSS = "server data loss"
WALL_STEP = "server wall clock step"
CLOCK_RATE = "client clock rate"
CANCEL = "task cancelled"
FORCE = "force_release"

MESSAGE_FAULTS = (SLOW, JITTER, LATE, DROP, DROP_REPLY, DUPLICATE)
EVENT_FAULTS = (
    *(PARTITION, RESET, CLIENT_PAUSE, CLIENT_CRASH, SERVER_PAUSE, SERVER_RESTART, DATA_LOSS),
    *(WALL_STEP, CANCEL, FORCE),
)
STATIC_FAULTS = (EARLY_PAUSE, CLOCK_RATE)
ALL_FAULTS = (*MESSAGE_FAULTS, *EVENT_FAULTS, *STATIC_FAULTS)
OFTEN = (CLIENT_PAUSE, PARTITION, CANCEL)

MUTEX, RWLOCK, SEMAPHORE, TREE = "lock", "rwlock", "semaphore", "tree"
KINDS = (MUTEX, MUTEX, RWLOCK, SEMAPHORE, TREE)

# S8 allows 1 % + 2 ms and S10 0.1 % while waiting: together they bear rates that differ by 0.55 %.
CLIENT_RATE = 0.005
SERVER_RATE = 0.0004


@dataclass(frozen=True, slots=True)
class Key:
    """One lock that everybody wants; one kind per name (S2)."""

    name: str
    kind: str
    limit: int
    ttl: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole setting of one run."""

    seed: int
    clients: int
    workers: int  # per client
    keys: tuple[Key, ...]
    ttl: float  # the scale of everything
    span: float  # how long the faults last
    connect_timeout: float
    faults: frozenset[str]
    events: tuple[tuple[float, str], ...]  # when, counted from the start, and what
    chance: dict[str, float] = field(hash=False)  # of message faults, for each message

    @property
    def longest_ttl(self) -> float:
        """The longest TTL that any lease may get, extensions included."""
        return max(key.ttl for key in self.keys) * LONGEST_EXTENSION


LONGEST_EXTENSION = 1.5
WORKERS = (2, 3, 4)
EVENTS = (8, 14)
SPAN = (3.5, 6.0)  # in TTLs


def make_plan(seed: int) -> Plan:
    """Let the seed decide."""
    dice = random.Random(f"plan {seed}")
    ttl = dice.choice((0.5, 0.8, 1.0, 2.0, 4.0))
    keys = tuple(_key(dice, number, ttl) for number in range(dice.choice((1, 2, 2, 3))))
    faults = frozenset(
        fault for fault in ALL_FAULTS if dice.random() < (0.6 if fault in OFTEN else 0.4)
    )
    span = dice.uniform(*SPAN) * ttl
    kinds = [fault for fault in EVENT_FAULTS if fault in faults]
    events = sorted(
        (dice.uniform(0.02, 0.98) * span, dice.choice(kinds))
        for _ in range(dice.randint(*EVENTS) if kinds else 0)
    )
    return Plan(
        seed=seed,
        clients=dice.randint(2, 5),
        workers=dice.choice(WORKERS),
        keys=keys,
        ttl=ttl,
        span=span,
        connect_timeout=dice.choice((0.3, 0.6, 1.0)),
        faults=faults,
        events=tuple(events),
        chance={fault: dice.uniform(0.01, 0.12) for fault in MESSAGE_FAULTS if fault in faults},
    )


def _key(dice: random.Random, number: int, ttl: float) -> Key:
    kind = dice.choice(KINDS)
    limit = dice.choice((1, 2, 3)) if kind == SEMAPHORE else 0
    return Key(f"k{number}", kind, limit, min(5.0, max(0.5, ttl * dice.uniform(0.8, 1.25))))
