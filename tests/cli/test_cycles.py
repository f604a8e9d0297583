"""Cycles of waits, found in snapshots: pure."""

from __future__ import annotations

from holdfast.doctor.cycles import Wait, find_cycles
from holdfast.model import Entry, Family, Mode, Snapshot


def entry(who: str, name: str, mode: Mode = Mode.EXCLUSIVE) -> Entry:
    """Return an entry of a label."""
    return Entry(name, None, who, who, mode, 0.0, 1.0)


def lock(name: str, holders: str, waiters: str = "", mode: Mode = Mode.EXCLUSIVE) -> Snapshot:
    """Return a lock; each letter is a label."""
    return Snapshot(
        name,
        Family.LOCK,
        0,
        tuple(entry(who, name, mode) for who in holders),
        tuple(entry(who, name) for who in waiters),
    )


def semaphore(name: str, holders: str, waiters: str) -> Snapshot:
    """Return a semaphore that is taken."""
    shot = lock(name, holders, waiters, Mode.SHARED)
    shared = tuple(entry(who, name, Mode.SHARED) for who in waiters)
    return Snapshot(name, Family.SEMAPHORE, len(holders), shot.holders, shared)


def test_two_wait_for_each_other() -> None:
    """A has x and wants y, B has y and wants x."""
    assert find_cycles([lock("x", "A", "B"), lock("y", "B", "A")]) == [
        (Wait("A", "y", "B"), Wait("B", "x", "A"))
    ]


def test_three_in_a_circle_and_one_outside() -> None:
    """Who waits behind a circle is not part of it."""
    cycles = find_cycles([lock("x", "A", "CD"), lock("y", "B", "A"), lock("z", "C", "B")])
    assert [{wait.label for wait in cycle} for cycle in cycles] == [{"A", "B", "C"}]


def test_a_chain_is_no_circle() -> None:
    """It ends with somebody who does not wait."""
    assert find_cycles([lock("x", "A", "B"), lock("y", "B", "C"), lock("z", "C", "D")]) == []


def test_own_threads_do_not_count() -> None:
    """A process whose threads share a lock waits for itself, which is normal."""
    assert find_cycles([lock("x", "A", "AA")]) == []


def test_earlier_waiters_are_in_the_way() -> None:
    """C waits for B, who came earlier, and B for C: first come, first served closes the circle."""
    shots = [lock("x", "A", "BC"), lock("y", "C", "B")]
    assert {wait.label for cycle in find_cycles(shots) for wait in cycle} == {"B", "C"}


def test_semaphore_with_one_holder_left() -> None:
    """Whoever of the holders leaves first will do: only if all are stuck, the wait is."""
    assert find_cycles([semaphore("s", "AB", "C"), lock("x", "C", "A")]) == []
    cycles = find_cycles([semaphore("s", "AB", "C"), lock("x", "C", "A"), lock("y", "C", "B")])
    assert [{wait.label for wait in cycle} for cycle in cycles] in (
        [{"A", "C"}, {"B", "C"}],
        [{"A", "C"}, {"C", "B"}],
    )


def test_readers_are_not_in_each_others_way() -> None:
    """Shared holders and a shared waiter do not conflict."""
    shot = Snapshot(
        "x", Family.LOCK, 0, (entry("A", "x", Mode.SHARED),), (entry("B", "x", Mode.SHARED),)
    )
    assert find_cycles([shot, lock("y", "B", "A")]) == []
