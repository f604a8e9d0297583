"""Counting the votes of a Redlock round: pure, so that each case can be tested by itself.

Rule 1: a majority of all configured nodes decides, never of those that answered.
Rule 2 (S20): votes count only for the token that was proposed in this round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median_low
from types import NoneType
from typing import Any

from .model import Holder
from .redis_link import LATE, Late
from .redis_record import read_holder

SIMPLE = frozenset((int, Late, NoneType))  # what they say, will say, or were not asked
NEAR = 30.0  # seconds; a clock further from the middle one than this does not number tokens


@dataclass(slots=True)
class Tally:
    """What the nodes said in one round; lists hold the numbers of nodes."""

    granted: list[int] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    silent: list[int] = field(default_factory=list)
    awaited: int = 0  # of the silent: the round was decided before they had answered
    unsure: list[int] = field(default_factory=list)  # silent, but asked: they may have granted
    strangers: list[int] = field(default_factory=list)
    floors: list[int] = field(default_factory=list)  # of nodes that have seen a higher token
    late: int = 0
    barred: int = 0
    ahead: int = 0
    quarantined: list[float] = field(default_factory=list)  # for how many seconds more
    mismatches: list[tuple[bytes, int]] = field(default_factory=list)
    roster: Sequence[bytes] | None = None  # of somebody who was set up differently
    floor: int = 0  # the highest that any node told
    positions: list[int] = field(default_factory=list)
    holders: list[Holder] = field(default_factory=list)
    slots: Counter[int] = field(default_factory=Counter)  # how many nodes say that one is taken


def count_votes(answers: Sequence[Any], proposal: int) -> Tally:
    """Sort the answers of one round."""
    tally = Tally()
    for number, answer in enumerate(answers):
        if type(answer) is int:  # the time alone: yes
            tally.granted.append(number)
            continue
        if type(answer) is not list:
            tally.silent.append(number)
            if answer is LATE:
                tally.awaited += 1
            if answer is not None:
                tally.unsure.append(number)
            continue
        kind, now = answer[0], int(answer[1])
        if kind == b"granted":
            if int(answer[2]) == proposal:
                tally.granted.append(number)
        elif kind == b"busy":
            tally.busy.append(number)
            tally.positions.append(int(answer[2]))
            tally.floor = max(tally.floor, int(answer[3]))
            tally.slots.update(int(one) for one in answer[4].split() if one.isdigit())
            if len(answer) > 5:
                tally.holders.append(read_holder(now, *answer[5:]))
        elif kind == b"floor":
            tally.floors.append(int(answer[2]))
            tally.floor = max(tally.floor, int(answer[2]))
        elif kind == b"stranger":
            tally.strangers.append(number)
        elif kind == b"quarantine":
            tally.quarantined.append(int(answer[2]) / 1e6)
        elif kind == b"mismatch":
            tally.mismatches.append((answer[2], int(answer[3])))
        elif kind == b"roster":
            tally.roster = answer[2:]
        elif kind == b"late":
            tally.late += 1
        elif kind == b"barred":
            tally.barred += 1
        else:
            tally.ahead += 1
    return tally


def main_holder(tally: Tally, blocking: int) -> Holder | None:
    """Return who keeps us out by itself, if somebody does; else the votes were split."""
    by_token: dict[int, list[Holder]] = {}
    for holder in tally.holders:
        by_token.setdefault(holder.token, []).append(holder)
    for holders in by_token.values():
        if len(holders) >= blocking:
            return min(holders, key=lambda one: one.expires_in)
    return None


def undisputed(answers: Sequence[Any], quorum: int) -> bool:
    """Say whether a majority simply said yes and nobody anything else: the usual case, quickly."""
    kinds = list(map(type, answers))
    return kinds.count(int) >= quorum and SIMPLE.issuperset(kinds)


def trusted(clocks: Sequence[float]) -> float:
    """Return the highest of the nodes' clocks (in seconds) that is not far off the middle one.

    A node whose clock is far off does not number anything: the others would refuse it.
    """
    middle = median_low(clocks)
    return max(one for one in clocks if abs(one - middle) <= NEAR)


def free_slot(tally: Tally, limit: int, quorum: int, nodes: int, chance: float) -> int | None:
    """Return a slot of a semaphore that a majority may still have, at random; None = all taken."""
    spare = nodes - quorum - len(tally.silent) - len(tally.quarantined) - tally.ahead
    taken = [slot for slot, count in tally.slots.items() if count > spare]
    free = limit - len(taken)
    if free <= 0:
        return None
    wanted = int(chance * free)
    for slot in sorted(taken):
        if slot <= wanted:
            wanted += 1
    return wanted
