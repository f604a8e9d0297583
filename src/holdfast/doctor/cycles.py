"""Cycles of waits: A holds x and waits for y, while B holds y and waits for x.

Rule 1: who is who is told by label; owner ids are new for every attempt (S1) and tell nothing.
Rule 2: a wait is hopeless while one of those in its way waits hopelessly; of a semaphore, while
        all of its holders do. Nobody is in one's own way: a process has many threads.
Rule 3: a cycle is reported once, as the shortest way from a label back to itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ..model import Snapshot
from ..rules import conflict


class Wait(NamedTuple):
    """`label` waits for `name`, which `blocker` holds or has asked for earlier."""

    label: str
    name: str
    blocker: str


class _Want(NamedTuple):
    label: str
    name: str
    blockers: frozenset[str]
    any_will_do: bool  # a semaphore: whichever holder leaves first


def find_cycles(shots: Sequence[Snapshot]) -> list[tuple[Wait, ...]]:
    """Return the cycles of waits in what was seen at one instant."""
    wants = [want for shot in shots for want in _wants(shot)]
    stuck = {want.label for want in wants}
    while True:
        free = stuck - {want.label for want in wants if _hopeless(want, stuck)}
        if not free:
            break
        stuck -= free
    edges: dict[str, list[Wait]] = {label: [] for label in sorted(stuck)}
    for want in wants:
        if want.label in stuck and _hopeless(want, stuck):
            towards = sorted(want.blockers & stuck - {want.label})
            edges[want.label] += [Wait(want.label, want.name, blocker) for blocker in towards]
    cycles: list[tuple[Wait, ...]] = []
    seen: set[frozenset[str]] = set()
    for label in edges:
        cycle = _way_back(label, edges)
        members = frozenset(wait.label for wait in cycle)
        if cycle and members not in seen:
            seen.add(members)
            cycles.append(cycle)
    return cycles


def _wants(shot: Snapshot) -> list[_Want]:
    wants: list[_Want] = []
    for place, waiter in enumerate(shot.waiters):
        if shot.limit:
            blockers = frozenset(entry.label for entry in shot.holders)
        else:
            ahead = (*shot.holders, *shot.waiters[:place])
            blockers = frozenset(entry.label for entry in ahead if conflict(waiter, entry))
        others = blockers - {waiter.label}
        if others:
            wants.append(_Want(waiter.label, shot.name, others, bool(shot.limit)))
    return wants


def _hopeless(want: _Want, stuck: set[str]) -> bool:
    if want.any_will_do:
        return want.blockers <= stuck
    return bool(want.blockers & stuck)


def _way_back(label: str, edges: dict[str, list[Wait]]) -> tuple[Wait, ...]:
    """Return the shortest way from a label to itself, breadth first; () if there is none."""
    ways: deque[tuple[Wait, ...]] = deque((wait,) for wait in edges[label])
    visited: set[str] = set()
    while ways:
        way = ways.popleft()
        here = way[-1].blocker
        if here == label:
            return way
        if here not in visited:
            visited.add(here)
            ways.extend((*way, wait) for wait in edges.get(here, ()))
    return ()
