"""The rules every engine and client obeys, as pure functions: time is an argument.

Rule 1 (S3): first come, first served; a claim enters when it conflicts with nobody inside and with
             nobody who came earlier and still waits, and fewer than `limit` are inside.
Rule 2 (S4): X conflicts with all, S with X, and only where one path is a prefix of the other.
             A mutex is X, a read lock S, a semaphore S with a limit, a tree node has a path.
Rule 3 (S8): validity is counted from the instant the request was sent, less the drift allowance.
Rule 4 (S18): a token is above its floor and not below the engine's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from .model import Entry, Mode, Snapshot

_SHARED = Mode.SHARED
_EXCLUSIVE = Mode.EXCLUSIVE

DRIFT_RATE = 0.01
DRIFT_FLOOR = 0.002
CLOCK_RATE_SLACK = 0.999  # S10: our clock against the server's while we waited
MAX_TOKEN = 2**53  # microseconds stay exact in a Lua double until the year 2255
FLOOR_LIFETIME = 24 * 3600.0  # S19


class Entrant(Protocol):
    """Anything with a mode and a path: a claim, or an entry of a snapshot."""

    @property
    def mode(self) -> Mode: ...
    @property
    def path(self) -> tuple[str, ...]: ...


E = TypeVar("E", bound=Entrant)


def conflict(one: Entrant, other: Entrant) -> bool:
    """Say whether two claims on the same record exclude each other."""
    if one.mode is _SHARED and other.mode is _SHARED:
        return False
    short = min(len(one.path), len(other.path))
    return one.path[:short] == other.path[:short]


def admit(holders: Iterable[Entrant], waiters: Iterable[E], limit: int) -> list[E]:
    """Return those of the waiting claims, in order, that enter now."""
    inside: list[Entrant] = list(holders)
    blocked: list[Entrant] = []
    entering: list[E] = []
    if any(one.mode is _EXCLUSIVE and not one.path for one in inside):
        return entering
    for claim in waiters:
        if limit and len(inside) >= limit:
            break
        if any(conflict(claim, one) for one in inside) or any(
            conflict(claim, one) for one in blocked
        ):
            blocked.append(claim)
        else:
            inside.append(claim)
            entering.append(claim)
        if claim.mode is _EXCLUSIVE and not claim.path:
            break  # it conflicts with everybody behind it, whether it entered or not
    return entering


def within(tree: Snapshot, name: str, path: tuple[str, ...]) -> Snapshot:
    """Return what of a tree's record touches `path`: on it, above it or below it."""

    def near(entry: Entry) -> bool:
        short = min(len(entry.path), len(path))
        return entry.path[:short] == path[:short]

    holders = tuple(entry for entry in tree.holders if near(entry))
    waiters = tuple(entry for entry in tree.waiters if near(entry))
    return Snapshot(name, tree.kind if holders or waiters else None, 0, holders, waiters)


def validity(sent: float, ttl: float) -> float:
    """Return the instant until which an answer to a request sent at `sent` can be relied on."""
    return sent + ttl - (ttl * DRIFT_RATE + DRIFT_FLOOR)


def pushed_validity(
    *, anchor: float, anchor_server: float, granted_server: float, received: float, ttl: float
) -> float:
    """Return the same for a grant that was pushed while we waited (S10).

    `anchor` and `anchor_server` are our clock before, and the server's during, the request that
    queued us. An anchor older than one ttl proves nothing, nor does a grant from before the anchor,
    which belongs to an earlier stay in the queue: the result is then `received`, that is, over at
    once, and the client confirms the grant before it relies on it.
    """
    if received - anchor > ttl or granted_server < anchor_server:
        return received
    elapsed = (granted_server - anchor_server) * CLOCK_RATE_SLACK
    return validity(min(anchor + elapsed, received), ttl)


def next_token(floor: int, server_micros: int) -> int:
    """Return the next token above `floor`, following the engine's clock where that is ahead."""
    if server_micros >= MAX_TOKEN:
        raise ValueError(
            f"The engine's clock says {server_micros} µs since 1970, beyond the year 2255; "
            "set it right before taking locks."
        )
    return server_micros if server_micros > floor else floor + 1


RENEWAL_GRID = 64


def renew_at(sent: float, ttl: float) -> float:
    """Return when to renew: a third of the TTL after the last confirmed send, or a little before.

    Instants are rounded down to a grid of ttl/64, so that leases taken at about the same time are
    renewed in one request.
    """
    step = ttl / RENEWAL_GRID
    due = sent + ttl / 3
    return due - due % step


def backoff(attempt: int, chance: float, first: float = 0.01, most: float = 0.8) -> float:
    """Return how long to pause before try number `attempt` + 1: doubling, with full jitter.

    `chance` is a random number in [0, 1).
    """
    return min(most, first * 2.0 ** min(attempt, 30)) * (0.1 + 0.9 * chance)


def retry_renewal(attempt: int, chance: float, ttl: float) -> float:
    """Return the pause before an unanswered renewal is sent again: short beside what is left."""
    return backoff(attempt, chance, first=ttl / 60, most=ttl / 10)


def retry_release(attempt: int, chance: float) -> float:
    """Return the pause before an unanswered release is sent again: 0.1 s, doubling, with jitter."""
    return 0.1 * 2.0 ** min(attempt, 6) * (0.5 + 0.5 * chance)


RECHECK_SPREAD = 0.05
RECHECK_SPREAD_MOST = 2.0


def recheck_in(holder_expires_in: float, position: int) -> float:
    """Return when a waiter should look again by itself, should nobody wake it.

    That is once the holder's lease is over, and the further back in the queue the later, so that
    a dead holder costs one request and not a herd.
    """
    return max(0.0, holder_expires_in) + min(RECHECK_SPREAD * position, RECHECK_SPREAD_MOST) + 0.005
