"""The values that travel between client and engine: immutable, validated here and nowhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from .errors import NotSupported

Seconds = float | int | timedelta


class Mode(StrEnum):
    """Who conflicts with whom: X with all, S with X (S3)."""

    SHARED = "S"
    EXCLUSIVE = "X"


class Family(StrEnum):
    """What a record is used for; fixed while anybody holds or waits (S2)."""

    LOCK = "lock"
    SEMAPHORE = "semaphore"
    TREE = "tree"


class Reason(StrEnum):
    """Why a lease was lost (S17)."""

    EXPIRED = "expired"
    UNREACHABLE = "unreachable"
    STOLEN = "stolen"
    FORCED = "forced"
    MAX_HOLD = "max_hold"
    FORKED = "forked"
    CLOSED = "closed"


class Terms(NamedTuple):
    """What is asked for, the same for every attempt; `check_terms` is its only maker."""

    key: str  # record key: namespace, version, encoded name
    name: str  # as the user wrote it
    family: Family
    mode: Mode
    path: tuple[str, ...]  # encoded segments below the record; empty unless a tree
    limit: int  # how many may hold at once; 0 = no limit
    ttl: float
    label: str
    value: str  # what a leader announces


class Claim(NamedTuple):
    """Terms plus who asks: one attempt to get a lock (S1). Every verb is idempotent for `owner`."""

    key: str
    name: str
    family: Family
    mode: Mode
    path: tuple[str, ...]
    limit: int
    ttl: float
    label: str
    value: str
    owner: str  # 128 random bits, new for every attempt
    queue: bool  # keep a place in the queue when busy?
    revision: int = 0  # rises with every extend: an older renewal that comes late must not undo it


class Holder(NamedTuple):
    """Who is in the way, as far as a busy answer tells."""

    label: str
    token: int
    expires_in: float


class Grant(NamedTuple):
    """The engine's yes: the token, and the instant on our clock until which it can be relied on."""

    token: int
    not_after: float


class Queued(NamedTuple):
    """The engine's not yet (with `queue=False`: no): ask again after `retry_in` at the latest."""

    position: int
    retry_in: float
    holder: Holder | None = None


class Outcome(StrEnum):
    """What a renewal found; unknown changes nothing, only time decides (S9)."""

    RENEWED = "renewed"
    LOST = "lost"
    UNKNOWN = "unknown"


class Renewal(NamedTuple):
    """One lease's renewal: `not_after` when renewed, `reason` when lost."""

    outcome: Outcome
    not_after: float = 0.0
    reason: Reason = Reason.EXPIRED


UNKNOWN = Renewal(Outcome.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Entry:
    """One holder or waiter as `inspect` shows it.

    `token` is None for a waiter. `since` is Unix time by the engine's clock; `expires_in` is the
    time after which the engine drops the entry without news from its owner.
    """

    name: str
    token: int | None
    owner: str
    label: str
    mode: Mode
    since: float
    expires_in: float
    value: str = ""
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A record at one instant: who holds it, and who waits in which order."""

    name: str
    kind: Family | None  # None: nobody holds or waits
    limit: int
    holders: tuple[Entry, ...]
    waiters: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads an election, what it announces, and the token its writes carry."""

    value: str
    token: int
    owner: str


class Skip:
    """The type of SKIPPED: what a singleton returns when another runs the job. Falsy."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "SKIPPED"


SKIPPED = Skip()


class Fault(StrEnum):
    """The faults under which an engine may promise that `held` of two clients never overlaps."""

    CLIENT_PAUSE = "client_pause"
    CLIENT_CRASH = "client_crash"
    CLIENT_CLOCK_STEP = "client_clock_step"
    PARTITION = "partition"
    SERVER_PAUSE = "server_pause"
    SERVER_RESTART = "server_restart"
    SERVER_DATA_LOSS = "server_data_loss"
    SERVER_CLOCK_STEP = "server_clock_step"
    FAILOVER = "failover"


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What an engine promises: static, readable without I/O, tested in both directions."""

    engine: str
    fencing: bool
    exclusive: frozenset[Fault]
    fair: bool
    push: bool
    crash_detection: bool
    expiry: str  # "lease": the engine's clock frees it; "session": the link to the engine does
    min_ttl: float
    max_ttl: float
    at_least: bool
    _yes_no: tuple[str, ...] = field(
        default=("fencing", "fair", "push", "crash_detection", "at_least"), repr=False
    )

    def require(self, *names: str) -> None:
        """Raise NotSupported, in one sentence, unless every named promise is made.

        A name is one of the yes/no fields, or a fault that `exclusive` must cover.
        """
        for name in names:
            if name in self._yes_no:
                promised = bool(getattr(self, name))
            elif name in tuple(Fault):
                promised = name in self.exclusive
            else:
                known = ", ".join((*self._yes_no, *Fault))
                raise ValueError(f"There is no guarantee called {name!r}; known are: {known}.")
            if not promised:
                what = f"exclusion under {name}" if name in tuple(Fault) else f"{name!r}"
                raise NotSupported(
                    f"The {self.engine} engine does not promise {what}; choose an engine that "
                    "does, or do without it.",
                    engine=self.engine,
                )


def seconds(value: Seconds, what: str) -> float:
    """Turn a duration into finite seconds, or raise one clear sentence."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            f"{what} must be seconds as a number or a timedelta, not {type(value).__name__}."
        )
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number of seconds, not {number}.")
    return number


def check_ttl(value: Seconds, guarantees: Guarantees) -> float:
    """Return a TTL in seconds that the engine can keep, or raise ValueError."""
    ttl = seconds(value, "ttl")
    if not guarantees.min_ttl <= ttl <= guarantees.max_ttl:
        raise ValueError(
            f"ttl={ttl:g} s is outside what the {guarantees.engine} engine keeps here: at least "
            f"{guarantees.min_ttl:g} s and at most {guarantees.max_ttl:g} s (connect(max_ttl=…) "
            "raises the upper bound)."
        )
    return ttl


def check_wait(value: Seconds | None, what: str = "timeout") -> float | None:
    """Return how long to wait: None = not said, inf = for ever (-1), 0 = at once."""
    if value is None:
        return None
    wait = seconds(value, what)
    if wait == -1:
        return math.inf
    if wait < 0:
        raise ValueError(f"{what} must be 0 or more seconds, or -1 for ever, not {wait:g}.")
    return wait


def check_patience(own: float, blocking: bool, timeout: Seconds | None) -> float:
    """Return how long one call waits: its own words, else those of the lock."""
    if blocking:
        return own if timeout is None else check_wait(timeout) or 0.0
    if timeout is not None:
        raise ValueError("timeout cannot be given together with blocking=False.")
    return 0.0


def check_limit(limit: int) -> int:
    """Return how many may hold a semaphore at once, or raise one clear sentence."""
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise TypeError(f"limit must be a whole number, not {type(limit).__name__}.")
    if not 1 <= limit <= 1_000_000:
        raise ValueError(f"limit must be between 1 and 1,000,000, not {limit}.")
    return limit


MAX_TEXT = 512


def check_text(text: str, what: str) -> str:
    """Return a label or value that every engine can store, or raise one clear sentence."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a string, not {type(text).__name__}.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{what} contains a lone surrogate, which no engine can store.") from None
    if size > MAX_TEXT:
        raise ValueError(f"{what} is {size} bytes long; {MAX_TEXT} is the most.")
    return text


def yes_or_no(text: str) -> bool:
    """Read a switch in a URL."""
    if text.lower() not in ("true", "1", "yes", "false", "0", "no"):
        raise ValueError(f"{text!r} is neither yes nor no.")
    return text.lower() in ("true", "1", "yes")
