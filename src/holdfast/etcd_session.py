"""A session and its tenants as data: one lease on etcd, and the claims of ours that hang on it.

Rule: a seat is one key below a record. It is given to another claim when the last is known to be
gone from the server; not if something was left there, and a session with a claim of which a copy
may still come gives no seats any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .etcd_record import Departure, Wait, claim_key, seat_of, session_key
from .model import Claim, Grant
from .rules import validity


class Session:
    """One lease, shared by all claims of a namespace whose TTL it covers."""

    __slots__ = (
        *("due", "gone", "key", "lease", "retired", "root", "seats", "seconds", "sent", "stop"),
        *("tenants", "used"),
    )

    def __init__(self, root: str, seconds: int, lease: int, sent: float) -> None:
        self.root = root
        self.seconds = seconds
        self.lease = lease
        self.key = session_key(root, lease)
        self.sent = sent  # when the request was sent that last confirmed it
        self.due = sent  # when to confirm it again
        self.used = sent  # when it was last wanted
        self.tenants: dict[str, Tenant] = {}  # by owner
        self.seats: dict[str, Seats] = {}  # by record, of those in use
        self.retired = False  # takes no more claims
        self.gone = False  # the lease is over, or given up
        self.stop: Callable[[], None] | None = None  # hearing of its own key

    @property
    def place(self) -> tuple[str, int]:
        """What it is looked for by: namespace and TTL."""
        return self.root, self.seconds

    def seat(self, claim: Claim) -> Tenant:
        """Give a claim a seat, and take note of it; the caller has the sessions' mutex."""
        seats = self.seats.get(claim.key)
        if seats is None:
            seats = self.seats[claim.key] = Seats()
        tenant = self.tenants[claim.owner] = Tenant(claim, self, seats.take())
        return tenant

    def unseat(self, tenant: Tenant) -> None:
        """Give the seat of a claim that is gone to the next; the caller has the mutex."""
        key = tenant.claim.key
        if self.seats[key].give_back(tenant.number):
            del self.seats[key]


class Seats:
    """The numbers of a session's seats below one record."""

    __slots__ = ("_count", "_free")

    def __init__(self) -> None:
        self._count = 0
        self._free: list[int] = []

    def take(self) -> int:
        """Return one that is free, a new one only if none is."""
        if self._free:
            return self._free.pop()
        self._count += 1
        return self._count - 1

    def give_back(self, number: int) -> bool:
        """Say whether all are free now."""
        self._free.append(number)
        return len(self._free) == self._count


class Tenant:
    """One claim of ours, from its first request to the answer to its release."""

    __slots__ = (
        *("claim", "departure", "doubts", "expires", "grace", "granted", "key", "leaving"),
        *("number", "revision", "seat", "session", "stop", "surplus", "wait"),
    )

    def __init__(self, claim: Claim, session: Session, number: int) -> None:
        self.claim = claim
        self.session = session
        self.number = number
        self.seat = seat_of(session.lease, number)
        self.key = claim_key(claim, self.seat)
        self.revision = 0  # of its key: its place and its token; 0 = not known yet
        self.granted = False
        self.leaving = False  # it is being removed: it is never granted again
        self.doubts = 0  # claims that were sent and have no answer
        self.expires = math.inf  # when it is over, unless it is renewed
        self.wait: Wait | None = None  # what it waits for
        self.surplus = 0  # how many more must leave until it is worth looking again
        self.departure: Departure | None = None  # of the last who left
        self.grace = 0.0  # when it may enter, after one who did not leave by itself
        self.stop: Callable[[], None] | None = None  # hearing of deletes

    def start_over(self) -> None:
        """Take its key, which is gone, for one that was never made."""
        self.revision, self.granted, self.expires = 0, False, math.inf
        self.unwatch()

    def unwatch(self) -> None:
        """Wait for nobody any more."""
        self.wait = None
        stop, self.stop = self.stop, None
        if stop is not None:
            stop()

    def grant(self) -> Grant:
        """Let it be inside, as long as its session is confirmed; return the grant."""
        sent, ttl = self.session.sent, self.claim.ttl
        self.granted = True
        self.expires = sent + ttl
        return tuple.__new__(Grant, (self.revision, validity(sent, ttl)))
