"""Judges a history: pure functions over its records, each O(n log n).

E  exclusion: the times during which conflicting leases relied on their lock are disjoint.
V  validity: no lease relies on its lock longer than the server keeps it (the cause behind E).
T  tokens: unique, and rising in real time: one that was given before another was asked for is
   smaller. Also over data loss.
L1 loss: whoever runs is told within 50 ms of its deadline; `held` is never true after that, and
   lost is final.
G, L2, W, R, X: see aftermath.py.

E leaves out only what is not promised: leases from before and after a loss of data among each
other, and a lease from the instant at which it was broken by force (S16).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from ...rules import conflict
from .history import Acquired, Ended, Kept, Looked, Minted, Paused, Record, Revoked

NOTICE = 0.05  # L1
ROUNDING = 1e-6  # instants are computed on several clocks

K = TypeVar("K")


class Violation(NamedTuple):
    """A promise that was broken: which checker says so, when, and in one sentence."""

    checker: str
    at: float
    sentence: str


class Records:
    """The records of a history by kind, in order."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.all = records
        self._kinds: dict[type[Any], list[Any]] = defaultdict(list)
        for record in records:
            self._kinds[type(record)].append(record)

    def of(self, kind: type[K]) -> list[K]:
        """Return all records of one kind."""
        return self._kinds[kind]

    def first_ends(self) -> dict[str, Ended]:
        """Return how each lease ended first, by owner."""
        ends: dict[str, Ended] = {}
        for end in self.of(Ended):
            ends.setdefault(end.owner, end)
        return ends


class _Hold(NamedTuple):
    """One lease, and the time during which it relied on its lock."""

    start: float
    end: float
    lease: Acquired
    epoch: int


def exclusion(records: Records) -> Iterator[Violation]:
    """E: conflicting leases never rely on their lock at the same time."""
    by_lock: dict[str, list[_Hold]] = defaultdict(list)
    for hold in _holds(records):
        by_lock[hold.lease.lock].append(hold)
    for holds in by_lock.values():
        inside: list[_Hold] = []
        for hold in sorted(holds, key=lambda one: one.start):
            inside = [one for one in inside if one.end > hold.start + ROUNDING]
            if hold.end <= hold.start + ROUNDING:
                continue
            rivals = [one for one in inside if one.epoch == hold.epoch and _exclude(one, hold)]
            if len(rivals) > max(0, hold.lease.limit - 1):
                both = f"{hold.lease.client} (token {hold.lease.token})"
                for one in rivals:
                    both += (
                        f" and {one.lease.client} (token {one.lease.token}, until {one.end:.6f})"
                    )
                yield Violation("E", hold.start, f"{hold.lease.lock} was held by {both}.")
            inside.append(hold)


def _exclude(one: _Hold, other: _Hold) -> bool:
    return one.lease.limit > 0 or conflict(one.lease, other.lease)


def _holds(records: Records) -> Iterator[_Hold]:
    ends = records.first_ends()
    mints = {(mint.owner, mint.token): mint for mint in records.of(Minted)}
    broken: dict[str, list[float]] = defaultdict(list)
    for revoked in records.of(Revoked):
        broken[revoked.owner].append(revoked.at)
    for lease in records.of(Acquired):
        end = ends.get(lease.owner)
        until = math.inf if end is None else min(end.at, end.deadline)
        mint = mints.get((lease.owner, lease.token))
        if mint is None:
            continue  # T says so
        until = min([until, *(at for at in broken[lease.owner] if at >= mint.at)])
        yield _Hold(lease.at, until, lease, mint.epoch)


def validity(records: Records) -> Iterator[Violation]:
    """V: at its end, no lease relied on more than the server had last promised it."""
    promised: dict[str, float] = {}
    for record in records.all:
        if type(record) is Minted or type(record) is Kept:
            promised[record.owner] = record.expires
        elif type(record) is Ended:
            until = promised.get(record.owner, -math.inf)
            if record.deadline > until + ROUNDING:
                yield Violation(
                    "V",
                    record.at,
                    f"{record.owner} relied on its lock until {record.deadline:.6f}, but the "
                    f"server kept it until {until:.6f}.",
                )


def tokens(records: Records) -> Iterator[Violation]:
    """T: tokens are what the server gave, are unique, and rise in real time."""
    owners: dict[tuple[str, int], str] = {}
    newest: dict[str, int] = {}
    for mint in records.of(Minted):
        owner = owners.setdefault((mint.lock, mint.token), mint.owner)
        if owner != mint.owner:
            yield Violation("T", mint.at, f"{mint.lock}: token {mint.token} was given twice.")
        if mint.token <= newest.get(mint.lock, 0):
            last = newest[mint.lock]
            yield Violation("T", mint.at, f"{mint.lock}: token {mint.token} came after {last}.")
        newest[mint.lock] = mint.token
    by_lock: dict[str, list[Acquired]] = defaultdict(list)
    for lease in records.of(Acquired):
        by_lock[lease.lock].append(lease)
        if owners.get((lease.lock, lease.token)) != lease.owner:
            yield Violation("T", lease.at, f"{lease.lock}: nobody gave token {lease.token}.")
    for leases in by_lock.values():
        yield from _rising(leases)


def _rising(leases: list[Acquired]) -> Iterator[Violation]:
    answered = sorted(leases, key=lambda lease: lease.at)
    highest, done = 0, 0
    for lease in sorted(leases, key=lambda lease: lease.invoked):
        while done < len(answered) and answered[done].at < lease.invoked:
            highest = max(highest, answered[done].token)
            done += 1
        if lease.token <= highest:
            sentence = f"{lease.lock}: token {lease.token} was asked for after {highest} was given."
            yield Violation("T", lease.at, sentence)


def loss(records: Records, notice: float = NOTICE) -> Iterator[Violation]:
    """L1: a holder that runs hears of its loss in time, and lost is final."""
    pauses: dict[str, list[Paused]] = defaultdict(list)
    for pause in records.of(Paused):
        pauses[pause.client].append(pause)
    ends = records.first_ends()
    for lease in records.of(Acquired):
        end = ends.get(lease.owner)
        if end is None:
            yield Violation("L1", lease.at, f"The lease {lease.token} of {lease.lock} never ended.")
        elif end.how != "killed":
            due = _running(pauses[lease.client], end.deadline, notice)
            if end.at > due + ROUNDING:
                yield Violation(
                    "L1",
                    end.at,
                    f"{lease.client} was {end.how} of {lease.lock} at {end.at:.6f}, though its "
                    f"deadline had been {end.deadline:.6f}.",
                )
    for look in records.of(Looked):
        end = ends.get(look.owner)
        if end is None:
            continue
        if look.held and (look.at > end.deadline + ROUNDING or look.at > end.at + ROUNDING):
            yield Violation("L1", look.at, f"{look.owner} looked held after {end.how}.")
        if end.how == "lost" and look.at > end.at + ROUNDING and not look.lost:
            yield Violation("L1", look.at, f"{look.owner} was lost and no longer says so.")


def _running(pauses: list[Paused], start: float, seconds: float) -> float:
    """Return when a process has run for `seconds` since `start`."""
    at, left = start, seconds
    for pause in sorted(pauses):
        if pause.until <= at:
            continue
        if pause.at > at + left:
            break
        left -= max(0.0, pause.at - at)
        at = max(at, pause.until)
    return at + left
