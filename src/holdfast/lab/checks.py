"""Judges a chronicle: one verdict for each promise, by the checkers of the simulation.

A loaded machine gets more time to tell a loss and to recover, never another try: exclusion, tokens
and the guard are judged by instants alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..model import Guarantees
from ..testing.simulation.aftermath import guard, leaks, liveness
from ..testing.simulation.checkers import Records, Violation, exclusion, loss, tokens
from .chronicle import Chronicle
from .nemesis import Nemesis
from .register import KINDS
from .verdict import Verdict

NOTICE = 0.25  # L1: 50 ms, and as much again for threads that wait for a busy core
WITHDRAWN = 2.5  # R: seconds, and as long again as the longest fault: tries get rarer with time


def judge(
    chronicle: Chronicle,
    guarantees: Guarantees,
    nemeses: Sequence[Nemesis],
    *,
    on_a_log: bool = False,
) -> list[Verdict]:
    """Return what each promise came to; see Harness.on_a_log."""
    records = Records(chronicle.records)
    bears = all(nemesis.promised(guarantees) for nemesis in nemeses)
    whole = not (on_a_log and any(nemesis.forgets for nemesis in nemeses))
    fences = guarantees.fencing and whole
    # What was written under a clock that ran an hour ahead may stay for that hour.
    timely = all(nemesis.promised(guarantees) for nemesis in nemeses if nemesis.steps_clock)
    leases, lost = len(chronicle.acquired), lost_updates(chronicle)
    writes = sum(1 for entry in chronicle.entries if not entry.refused)
    refused = sum(1 for entry in chronicle.entries if entry.refused)
    guarded = f"{writes // len(KINDS)} writes, {refused} refused; without a guard {lost[KINDS[0]]}"
    guarded += f" lost, with one that looks only when it writes {lost[KINDS[1]]}"
    found = (
        ("E", bears, _both(exclusion(records), forked(chronicle)), f"{leases} leases"),
        ("V", bears, validity(chronicle), ""),
        ("T", fences, tokens(records), ""),
        ("G", fences, guard(records), guarded),
        ("L1", True, loss(records, NOTICE), ""),
        ("L2", whole, liveness(records), ""),
        ("R", bears, releases(chronicle), ""),
        ("X", timely, leaks(records), ""),
    )
    return [
        Verdict(letter, promised, tuple(violations), note)
        for letter, promised, violations, note in found
    ]


def _both(one: Iterator[Violation], other: Iterator[Violation]) -> Iterator[Violation]:
    yield from one
    yield from other


def forked(chronicle: Chronicle) -> Iterator[Violation]:
    """E: a forked child holds nothing of its parent's (S29)."""
    for belief in chronicle.believers:
        sentence = f"{belief.child} looked held: a forked child believed in token {belief.token}."
        yield Violation("E", belief.at, sentence)


def validity(chronicle: Chronicle) -> Iterator[Violation]:
    """V: the engine never says that a lease is gone while its holder can rely on it."""
    for broken in chronicle.broken:
        left = broken.until - broken.at
        sentence = f"{broken.client} could rely on token {broken.token} for {left:.3f} s more when"
        yield Violation("V", broken.at, f"{sentence} the engine said that it was gone.")


def releases(chronicle: Chronicle) -> Iterator[Violation]:
    """R: what was given back, and what nobody was ever given, is not seen held.

    An attempt that failed is withdrawn in the background for one TTL; and who was killed may not
    have had the time to write down what it was given.
    """
    given = {(lease.lock, lease.token) for lease in chronicle.acquired}
    longest = max((span.end - span.start for span in chronicle.faults), default=0.0)
    settled = chronicle.healed + WITHDRAWN + longest
    first: dict[tuple[str, int], float] = {}
    for seen in chronicle.seen:
        what = (seen.lock, seen.token)
        since = first.setdefault(what, seen.at)
        if chronicle.given_back.get(what, math.inf) < seen.at:
            sentence = f"{seen.lock}: token {seen.token} was seen held after it was given back."
            yield Violation("R", seen.at, sentence)
        unknown = what not in given and seen.label not in chronicle.killed
        if unknown and settled < seen.at < since + chronicle.ttl:
            sentence = f"{seen.lock}: nobody knows that it holds token {seen.token}."
            yield Violation("R", seen.at, f"{sentence} It was asked for by {seen.label}.")


def lost_updates(chronicle: Chronicle) -> dict[str, int]:
    """Count the updates that each kind of register has lost."""
    lost = dict.fromkeys(KINDS, 0)
    for entry in chronicle.entries:
        if not entry.refused and entry.based_on is not None and entry.based_on != entry.found:
            lost[entry.kind] += 1
    return lost
