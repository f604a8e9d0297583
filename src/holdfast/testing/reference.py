"""The reference: who must hold and who must wait, in lists and straight from `rules.admit`.

Rule 1: it shares nothing with any engine but `rules.admit`, and is slow and obvious on purpose.
Rule 2: every verb first lets go whose time is over, then lets in who may enter, one by one.
Rule 3: it knows no tokens; those are checked as they appear.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import LockMismatch
from ..model import Claim
from ..rules import admit


@dataclass
class Held:
    """One holder; with `nobody` it is only a marker that keeps the lock taken (S31)."""

    claim: Claim
    until: float
    nobody: bool = False


@dataclass
class Record:
    """One name."""

    holders: list[Held] = field(default_factory=list)
    waiters: list[Claim] = field(default_factory=list)

    def holder(self, owner: str) -> Held | None:
        return next((one for one in self.holders if one.claim.owner == owner), None)


class Reference:
    """All names, on a clock that only `advance` moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.records: dict[str, Record] = {}
        self.buried: set[str] = set()
        self.dead: set[str] = set()

    def record(self, key: str) -> Record:
        """Return one record as it is now."""
        record = self.records.setdefault(key, Record())
        record.holders = [one for one in record.holders if one.until > self.now]
        everybody = [one.claim for one in record.holders] + record.waiters
        limit = everybody[0].limit if everybody else 0
        while entering := admit([one.claim for one in record.holders], record.waiters, limit):
            claim = entering[0]
            record.waiters.remove(claim)
            if claim.owner not in self.dead:
                record.holders.append(Held(claim, self.now + claim.ttl))
        return record

    def claim(self, claim: Claim) -> bool:
        """Say whether the claim holds now."""
        record = self.record(claim.key)
        if claim.owner in self.buried:
            return False
        held = record.holder(claim.owner)
        if held is not None:
            if not held.nobody:  # a late copy must not take back what an extend has added since
                held.until = max(held.until, self.now + claim.ttl)
            return not held.nobody
        if claim.owner in [one.owner for one in record.waiters]:
            return False
        for one in [*(held.claim for held in record.holders), *record.waiters][:1]:
            if (one.family, one.limit) != (claim.family, claim.limit):
                raise LockMismatch("another kind", name=claim.name)
        record.waiters.append(claim)
        entered = self.record(claim.key).holder(claim.owner) is not None
        if not entered and not claim.queue:
            record.waiters.remove(claim)
        return entered

    def renew(self, claim: Claim) -> bool:
        """Say whether the claim held, and set the time it has left to its TTL.

        One that was sent before an extend, and comes after it, may add time but take none away.
        """
        held = self.record(claim.key).holder(claim.owner)
        if held is None or held.nobody:
            return False
        until = self.now + claim.ttl
        if claim.revision < held.claim.revision:
            held.until = max(held.until, until)
        else:
            held.claim, held.until = claim, until
        return True

    def release(self, claim: Claim, linger: float = 0.0) -> bool:
        """Say whether the claim held, and end it; an unknown owner never enters any more."""
        record = self.record(claim.key)
        held = record.holder(claim.owner)
        if held is None and claim.owner not in [one.owner for one in record.waiters]:
            self.buried.add(claim.owner)
        record.waiters = [one for one in record.waiters if one.owner != claim.owner]
        if held is None or held.nobody:
            return False  # a marker stays until its time is over, however often it is released
        if linger:
            held.nobody, held.until = True, self.now + linger
        else:
            record.holders.remove(held)
        return True

    def force(self, key: str, owners: list[str] | None) -> int:
        """Remove all holders, or these; return how many."""
        record = self.record(key)
        stay = [] if owners is None else [o for o in record.holders if o.claim.owner not in owners]
        removed = len(record.holders) - len(stay)
        record.holders = stay
        return removed
