"""A session and its tenants as data: one lease on etcd, and the claims of ours that hang on it."""

from __future__ import annotations

import math
from collections.abc import Callable

from .etcd_record import Departure, Wait, session_key
from .model import Claim, Grant
from .rules import validity


class Session:
    """One lease, shared by all claims of a namespace whose TTL it covers."""

    __slots__ = (
        *("due", "gone", "key", "lease", "retired", "root", "seconds", "sent", "stop"),
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
        self.retired = False  # takes no more claims
        self.gone = False  # the lease is over, or given up
        self.stop: Callable[[], None] | None = None  # hearing of its own key

    @property
    def place(self) -> tuple[str, int]:
        """What it is looked for by: namespace and TTL."""
        return self.root, self.seconds


class Tenant:
    """One claim of ours, from its first request to the answer to its release."""

    __slots__ = (
        *("claim", "departure", "doubts", "expires", "grace", "granted", "revision"),
        *("session", "stop", "surplus", "wait"),
    )

    def __init__(self, claim: Claim, session: Session) -> None:
        self.claim = claim
        self.session = session
        self.revision = 0  # of its key: its place and its token; 0 = not known yet
        self.granted = False
        self.doubts = 0  # claims that were sent and have no answer
        self.expires = math.inf  # when it is over, unless it is renewed
        self.wait: Wait | None = None  # what it waits for
        self.surplus = 0  # how many more must leave until it is worth looking again
        self.departure: Departure | None = None  # of the last who left
        self.grace = 0.0  # when it may enter, after one who did not leave by itself
        self.stop: Callable[[], None] | None = None  # hearing of deletes

    def grant(self) -> Grant:
        """Let it be inside, as long as its session is confirmed; return the grant."""
        sent, ttl = self.session.sent, self.claim.ttl
        self.granted = True
        self.expires = sent + ttl
        return tuple.__new__(Grant, (self.revision, validity(sent, ttl)))
