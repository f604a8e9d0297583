"""One frozen dataclass per thing that happens: what metrics, logs and dashboards are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from .model import Mode, Reason


@dataclass(frozen=True, kw_only=True)
class Event:
    """Common to all: which lock, on which engine (without secrets), in which namespace.

    `at` is when, as Unix time by this machine's clock; 0 = not said, then it is now.
    """

    name: str
    engine: str
    namespace: str
    at: float = 0.0

    @classmethod
    def of(cls, details: dict[str, Any]) -> Self:
        """Make an event of its details, which are not copied; quicker than its constructor."""
        event = object.__new__(cls)
        object.__setattr__(event, "__dict__", details)
        return event


@dataclass(frozen=True, kw_only=True)
class Missed(Event):
    """An attempt ended without a lease: `busy` (did not want to wait), `timeout` or `error`.

    Or `skipped`: a singleton job that another runs, of which Skipped tells too.
    """

    mode: Mode
    result: str
    waited: float
    error: str = ""
    owner: str = ""


@dataclass(frozen=True, kw_only=True)
class Waiting(Event):
    """An attempt was queued."""

    mode: Mode
    owner: str
    position: int
    holder: str = ""


@dataclass(frozen=True, kw_only=True)
class LongWait(Event):
    """A wait without time-out has lasted longer than ten TTL."""

    mode: Mode
    owner: str
    waited: float
    holder: str = ""


@dataclass(frozen=True, kw_only=True)
class LeaseEvent(Event):
    """Common to what happens to a lease."""

    token: int
    owner: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Acquired(LeaseEvent):
    """A lease was granted after `waited` seconds."""

    mode: Mode
    ttl: float
    waited: float


@dataclass(frozen=True, kw_only=True)
class Renewed(LeaseEvent):
    """A lease was renewed when `remaining` of its `ttl` was left: little left = late.

    `scheduled`: in the background, a third of the TTL after the last time; else its holder asked.
    """

    ttl: float
    remaining: float
    scheduled: bool = True


@dataclass(frozen=True, kw_only=True)
class Suspended(LeaseEvent):
    """A renewal had no answer; the lease is still held while `remaining` lasts."""

    remaining: float
    error: str


@dataclass(frozen=True, kw_only=True)
class Resumed(LeaseEvent):
    """A suspended lease was confirmed again, with the same token."""


@dataclass(frozen=True, kw_only=True)
class Lost(LeaseEvent):
    """A lease is over before its release; final."""

    reason: Reason
    held_for: float
    max_hold: float | None = None


@dataclass(frozen=True, kw_only=True)
class Released(LeaseEvent):
    """A lease was given back: True = was ours, False = already gone, None = no answer yet.

    `took` is how long that took; `reason` is why it had been lost before, if it had: then Lost
    has told how long it was held.
    """

    outcome: bool | None
    held_for: float
    took: float = 0.0
    max_hold: float | None = None
    reason: Reason | None = None


@dataclass(frozen=True, kw_only=True)
class Leaked(LeaseEvent):
    """A lease was dropped without release; it is being released in the background."""


@dataclass(frozen=True, kw_only=True)
class ReleaseGaveUp(LeaseEvent):
    """A release had no answer until the TTL was over."""

    error: str


@dataclass(frozen=True, kw_only=True)
class Forced(Event):
    """This client broke a lock: `count` holders were removed (of `token`, or all)."""

    token: int | None
    count: int


@dataclass(frozen=True, kw_only=True)
class Skipped(Event):
    """A singleton job was not run here because another runs it."""


@dataclass(frozen=True, kw_only=True)
class NodeEvent(Event):
    """Common to what happens to a server, `node`; `name` is empty."""

    node: str


@dataclass(frozen=True, kw_only=True)
class ClockStep(NodeEvent):
    """A server's clock was set, by `step` seconds: locks may have ended early, or last longer."""

    step: float


@dataclass(frozen=True, kw_only=True)
class NodeAnswered(NodeEvent):
    """A server has answered, after `latency` seconds: a sign of life, told once a second at most.

    `offset` is what its clock is ahead of this machine's, give or take `uncertainty`.
    """

    latency: float
    offset: float
    uncertainty: float


@dataclass(frozen=True, kw_only=True)
class Deaf(NodeEvent):
    """Messages from a server cannot reach this client: its waiters look now and then instead."""

    why: str


@dataclass(frozen=True, kw_only=True)
class NodeFailed(NodeEvent):
    """A server gave no answer; where there are several, the others decide."""

    error: str


@dataclass(frozen=True, kw_only=True)
class GuardEvent(Event):
    """Common to what a guard does: `name` is the resource, `engine` the kind of guard.

    `seen` is the highest token the resource has seen, this one included if it was let in;
    `offered` is the one that was shown.
    """

    domain: str
    mode: Mode
    seen: int
    offered: int


@dataclass(frozen=True, kw_only=True)
class Accepted(GuardEvent):
    """A guard let somebody in, and what was done there is stored."""


@dataclass(frozen=True, kw_only=True)
class Refused(GuardEvent):
    """A guard kept somebody out: a double execution was about to happen."""

    error: str


@dataclass(frozen=True, kw_only=True)
class Adopted(Event):
    """A resource was moved to tokens of another domain: `name` is the resource."""

    previous: str
    domain: str
