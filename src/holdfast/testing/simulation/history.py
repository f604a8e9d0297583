"""The history of one simulated run: frozen records, in the order in which they happened.

Rule 1: every `at` is global time, the loop's own; instants of a machine's clock are mapped to it.
Rule 2: records say what happened, never what it means: judging is for the checkers.
Rule 3: the same seed gives the same history, to the last digit; `fingerprint` compares two.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import NamedTuple

from ...model import Mode


class Acquired(NamedTuple):
    """A client was given a lease, asked for at `invoked`."""

    at: float
    invoked: float
    client: str
    lock: str  # the record's name
    path: tuple[str, ...]
    mode: Mode
    limit: int
    owner: str
    token: int


class Ended(NamedTuple):
    """A lease ended: released (when called), lost (when told), or its process was killed.

    `deadline` is what the lease relied on at that moment, in global time.
    """

    at: float
    owner: str
    how: str
    deadline: float
    reason: str = ""


class Looked(NamedTuple):
    """A holder looked at its lease."""

    at: float
    owner: str
    held: bool
    lost: bool


class Called(NamedTuple):
    """A client called a verb of its engine; `refused` = the answer was a definite busy."""

    at: float
    client: str
    verb: str
    owner: str


class Paused(NamedTuple):
    """A client process stands still until then."""

    at: float
    client: str
    until: float


class Killed(NamedTuple):
    """A client process was killed."""

    at: float
    client: str


class Minted(NamedTuple):
    """The server let an owner in, and keeps it until `expires` unless it hears from it."""

    at: float
    lock: str
    owner: str
    token: int
    epoch: int  # how often the server had lost its data
    expires: float


class Kept(NamedTuple):
    """The server told an owner that it still holds, and keeps it until `expires`."""

    at: float
    owner: str
    epoch: int
    expires: float


class Left(NamedTuple):
    """The server executed a release; `known` = that owner held or waited."""

    at: float
    owner: str
    epoch: int
    known: bool


class Revoked(NamedTuple):
    """The server removed a holder by force (S16)."""

    at: float
    owner: str


class Wrote(NamedTuple):
    """A register took a write that was based on reading `based_on` when it held `found`."""

    at: float
    register: str
    token: int
    based_on: int
    found: int
    guarded: bool


class Answered(NamedTuple):
    """A writer of a guarded register learnt its fate: acknowledged, or never told."""

    at: float
    register: str
    token: int
    acknowledged: bool


class Injected(NamedTuple):
    """The nemesis did something."""

    at: float
    fault: str
    detail: str


class Healed(NamedTuple):
    """All faults ended."""

    at: float


class Recovered(NamedTuple):
    """After healing: this waiter, key or client did what it must be able to do."""

    at: float
    what: str


class Awaited(NamedTuple):
    """After healing: this must come, and at the latest then."""

    at: float
    what: str
    by: float


class Remains(NamedTuple):
    """After all clients closed and every TTL passed: this was still there."""

    at: float
    what: str


class Unexpected(NamedTuple):
    """An error that no rule foresees: logged by the client, or raised into the workload."""

    at: float
    what: str


Record = (
    Acquired
    | Ended
    | Looked
    | Called
    | Paused
    | Killed
    | Minted
    | Kept
    | Left
    | Revoked
    | Wrote
    | Answered
    | Injected
    | Healed
    | Recovered
    | Awaited
    | Remains
    | Unexpected
)


class History:
    """What happened in one run, and how much was done."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.calls: Counter[str] = Counter()  # public calls of the workload
        self.verbs: Counter[str] = Counter()  # engine verbs called by the clients
        self.faults: Counter[str] = Counter()
        self._sealed = False

    def add(self, record: Record) -> None:
        """Append what just happened."""
        if not self._sealed:
            self.records.append(record)

    def seal(self) -> None:
        """Take nothing more: what follows is only the burial of killed processes."""
        self._sealed = True

    def inject(self, at: float, fault: str, detail: str = "") -> None:
        """Count a fault and write it down."""
        self.faults[fault] += 1
        self.add(Injected(at, fault, detail))

    def fingerprint(self) -> str:
        """Return a hash of all records: equal for equal runs."""
        digest = hashlib.sha256()
        for record in self.records:
            digest.update(repr(record).encode())
        return digest.hexdigest()
