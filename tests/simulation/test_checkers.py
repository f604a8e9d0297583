"""The checkers themselves: each condemns the smallest history that is wrong, and no other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.model import Mode
from holdfast.testing.simulation.aftermath import check, unguarded_losses
from holdfast.testing.simulation.history import (
    Acquired,
    Answered,
    Awaited,
    Called,
    Ended,
    Kept,
    Killed,
    Left,
    Looked,
    Minted,
    Paused,
    Record,
    Recovered,
    Remains,
    Revoked,
    Unexpected,
    Wrote,
)

X, S = Mode.EXCLUSIVE, Mode.SHARED


def hold(
    owner: str,
    start: float,
    end: float,
    token: int,
    *,
    mode: Mode = X,
    path: tuple[str, ...] = (),
    limit: int = 0,
    epoch: int = 0,
) -> list[Record]:
    """Return one lease from grant to release, by a client that is called like its owner."""
    return [
        Called(start - 0.2, owner, "claim", owner),
        Minted(start - 0.1, "k", owner, token, epoch, end + 1.0),
        Acquired(start, start - 0.2, owner, "k", path, mode, limit, owner, token),
        Ended(end, owner, "released", end + 0.5),
        Called(end, owner, "release", owner),
        Left(end, owner, epoch, True),
    ]


def judge(*parts: Sequence[Record]) -> list[str]:
    """Return which checkers complain about these records, in order of time."""
    records = sorted((record for part in parts for record in part), key=lambda record: record.at)
    return sorted({violation.checker for violation in check(records)})


def test_a_good_history_passes() -> None:
    """One after the other, tokens rising: nobody complains."""
    assert judge(hold("a", 1.0, 2.0, 10), hold("b", 2.5, 3.0, 11)) == []


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ({}, {}, ["E"]),
        ({"mode": S}, {}, ["E"]),
        ({"mode": S}, {"mode": S}, []),
        ({"mode": S, "limit": 1}, {"mode": S, "limit": 1}, ["E"]),
        ({"mode": S, "limit": 2}, {"mode": S, "limit": 2}, []),
        ({"path": ("a",)}, {"path": ("a", "b")}, ["E"]),
        ({"path": ("a",)}, {"path": ("b",)}, []),
        ({"epoch": 0}, {"epoch": 1}, []),  # data were lost in between: not promised
    ],
)
def test_exclusion(one: dict[str, object], other: dict[str, object], found: list[str]) -> None:
    """E: two leases overlap; it is wrong if they conflict and the server knew of both."""
    first = hold("a", 1.0, 2.0, 10, **one)  # type: ignore[arg-type]
    assert judge(first, hold("b", 1.5, 3.0, 11, **other)) == found  # type: ignore[arg-type]


def test_exclusion_ends_with_the_deadline_or_force() -> None:
    """E: a lease counts until its own deadline, and until it was broken by force (S16)."""
    late: list[Record] = [
        Ended(2.0, "a", "lost", 1.4, "forced") if isinstance(record, Ended) else record
        for record in hold("a", 1.0, 2.0, 10)
    ]
    paused = [Paused(1.2, "a", 2.0)]
    assert judge(late, paused, hold("b", 1.5, 3.0, 11)) == []
    assert judge(hold("a", 1.0, 2.0, 10), [Revoked(1.3, "a")], hold("b", 1.5, 3.0, 11)) == []


def test_validity() -> None:
    """V: a lease that relies on its lock longer than the server keeps it is found at once."""
    records = [
        Ended(record.at, "a", "released", 9.0) if isinstance(record, Ended) else record
        for record in hold("a", 1.0, 2.0, 10)
    ]
    assert judge(records) == ["V"]


def test_tokens() -> None:
    """T: twice the same, falling, or invented."""
    assert judge(hold("a", 1.0, 2.0, 10), hold("b", 2.5, 3.0, 10)) == ["T"]
    assert judge(hold("a", 1.0, 2.0, 10), hold("b", 2.5, 3.0, 9, epoch=1)) == ["T"]
    invented = [record for record in hold("a", 1.0, 2.0, 10) if not isinstance(record, Minted)]
    assert "T" in judge(invented)


@pytest.mark.parametrize(
    ("lost_at", "paused_until", "found"),
    [(1.449, None, []), (1.46, None, ["L1"]), (3.049, 3.0, []), (3.06, 3.0, ["L1"])],
)
def test_loss_is_told_in_time(lost_at: float, paused_until: float | None, found: list[str]) -> None:
    """L1: 50 ms after the deadline, or after the process runs again."""
    records: list[Record] = [
        Called(0.8, "a", "claim", "a"),
        Minted(0.9, "k", "a", 10, 0, 1.9),
        Acquired(1.0, 0.8, "a", "k", (), X, 0, "a", 10),
        Ended(lost_at, "a", "lost", 1.4, "expired"),
        Called(4.0, "a", "release", "a"),
    ]
    pauses = [] if paused_until is None else [Paused(1.2, "a", paused_until)]
    assert judge(records, pauses) == found


def test_lost_is_final() -> None:
    """L1: a lease that ended is not held, and one that never ends is a finding."""
    good = hold("a", 1.0, 2.0, 10)
    assert judge(good, [Looked(1.5, "a", True, False)]) == []
    assert judge(good, [Looked(2.1, "a", True, False)]) == ["L1"]
    assert judge([record for record in good if not isinstance(record, Ended)]) == ["L1"]


def test_guard() -> None:
    """G: a write over a value that was not read, and an acknowledged one that never was."""
    good: list[Record] = [Wrote(1.0, "r", 10, 0, 0, True), Answered(1.0, "r", 10, True)]
    assert judge(good) == []
    assert judge(good, [Wrote(2.0, "r", 11, 0, 1, True)]) == ["G"]
    assert judge([Answered(1.0, "r", 10, True)]) == ["G"]
    without = [Wrote(1.0, "r", 10, 0, 0, False), Wrote(2.0, "r", 11, 0, 1, False)]
    assert judge(without) == []
    assert unguarded_losses(without) == 1


def test_liveness() -> None:
    """L2: late is as wrong as never."""
    awaited = [Awaited(1.0, "key k", 2.0)]
    assert judge(awaited, [Recovered(1.9, "key k")]) == []
    assert judge(awaited, [Recovered(2.1, "key k")]) == ["L2"]
    assert judge(awaited) == ["L2"]


def test_withdrawal() -> None:
    """W: who asked and got nothing gives back, and does not come in by the back door."""
    claim: list[Record] = [Called(1.0, "a", "claim", "o")]
    release: list[Record] = [Called(2.0, "a", "release", "o"), Left(2.1, "o", 0, False)]
    assert judge(claim) == ["W"]
    assert judge(claim, [Killed(1.1, "a")]) == []
    assert judge(claim, [Called(1.1, "a", "refused", "o")]) == []
    assert judge(claim, release) == []
    assert judge(claim, release, [Minted(3.0, "k", "o", 10, 0, 4.0)]) == ["W"]
    assert judge(claim, release, [Minted(3.0, "k", "o", 10, 1, 4.0)]) == []


def test_renewal() -> None:
    """R: nobody is kept who has left or whose time was over."""
    mint = [Minted(1.0, "k", "o", 10, 0, 2.0)]
    assert judge(mint, [Kept(1.5, "o", 0, 2.5)]) == []
    assert judge(mint, [Kept(2.1, "o", 0, 3.1)]) == ["R"]
    assert judge(mint, [Left(1.2, "o", 0, True), Kept(1.5, "o", 0, 2.5)]) == ["R"]


def test_leaks_and_surprises() -> None:
    """X: what remains, and what nobody foresaw."""
    assert judge([Remains(1.0, "a holder")]) == ["X"]
    assert judge([Unexpected(1.0, "KeyError()")]) == ["X"]
