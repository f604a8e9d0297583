"""The lock table and the memory engine do what `rules.admit` says on any schedule, and the model
test would notice if they did not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from holdfast import lock_table
from holdfast._sync.engines.memory import MemoryEngine
from holdfast.errors import LockMismatch
from holdfast.lock_table import Channel, LockTable
from holdfast.model import Claim, Queued, Reason
from holdfast.rules import admit, conflict
from holdfast.testing.adapters import EngineAdapter, TableAdapter
from holdfast.testing.model import run_model


def test_the_lock_table() -> None:
    """Holders, queue, tokens and refusals are those of the reference."""
    run_model(TableAdapter)


def test_the_memory_engine() -> None:
    """The same through the verbs of an engine, pushed grants included."""

    def make() -> EngineAdapter:
        now = [1000.0]

        def clock() -> float:
            return now[0]

        def advance(seconds: float) -> None:
            now[0] += seconds

        table = LockTable(clock=clock, micros=lambda: int(now[0] * 1e6))
        engine = MemoryEngine("memory://", max_ttl=300.0, clock=clock, state=table)
        return EngineAdapter(engine, advance, unit=1.0)

    run_model(make, examples=50)


# --- Planted bugs: one sentence of the rules broken each. ---


class ReleasesWhoever(LockTable):
    """Frees the lock without comparing the owner."""

    def release(self, claim: Claim, linger: float = 0.0) -> bool:
        for entry in self.inspect(claim.key).holders:
            super().release(claim._replace(owner=entry.owner), linger)
        return super().release(claim, linger)


class RenewalCreates(LockTable):
    """Makes a holder of whoever renews."""

    def renew(self, claims: Sequence[Claim]) -> list[Reason | None]:
        answers = super().renew(claims)
        for claim, answer in zip(claims, answers, strict=True):
            if answer is not None and self.inspect(claim.key).kind is None:
                super().claim(claim._replace(queue=False), TableAdapter())
        return answers


class ForgetsItsTokens(LockTable):
    """Starts to count again whenever a lock was given back."""

    def release(self, claim: Claim, linger: float = 0.0) -> bool:
        self.floor = 0
        return super().release(claim, linger)


class NewTokenForEachCopy(LockTable):
    """Counts a repeated claim as a new grant."""

    def claim(self, claim: Claim, channel: Channel) -> int | Queued:
        if claim.owner in [one.owner for one in self.inspect(claim.key).holders]:
            super().release(claim)
        return super().claim(claim, channel)


class WithoutTombstones(LockTable):
    """Does not remember who was withdrawn."""

    def release(self, claim: Claim, linger: float = 0.0) -> bool:
        shot = self.inspect(claim.key)
        if claim.owner not in [entry.owner for entry in (*shot.holders, *shot.waiters)]:
            return False
        return super().release(claim, linger)


class TakesAnyKind(LockTable):
    """Answers busy where it should refuse."""

    def claim(self, claim: Claim, channel: Channel) -> int | Queued:
        try:
            return super().claim(claim, channel)
        except LockMismatch:
            return Queued(0, 1.0)


class NeverExpires(LockTable):
    """Lets a dead holder hold for ever."""

    def __init__(self, **options: Any) -> None:
        started = options["clock"]()
        super().__init__(**{**options, "clock": lambda: started})


class LateRenewalShortens(LockTable):
    """Takes a renewal from before an extend for a new one."""

    def renew(self, claims: Sequence[Claim]) -> list[Reason | None]:
        self.revision = getattr(self, "revision", 10**6) + 1
        return super().renew([claim._replace(revision=self.revision) for claim in claims])


BROKEN_TABLES = (
    LateRenewalShortens,
    ReleasesWhoever,
    RenewalCreates,
    ForgetsItsTokens,
    NewTokenForEachCopy,
    WithoutTombstones,
    TakesAnyKind,
    NeverExpires,
)


@pytest.mark.parametrize("table", BROKEN_TABLES)
def test_a_broken_table_is_noticed(table: type[LockTable]) -> None:
    """Each of these mistakes shows within a few hundred schedules, as a rule within the first."""
    with pytest.raises(AssertionError):
        run_model(lambda: TableAdapter(table), examples=1000, shrink=False)


def starve_writers(holders: Iterable[Any], waiters: Iterable[Any], limit: int) -> list[Any]:
    """Let in whoever does not conflict with a holder, whoever waits before it."""
    inside = list(holders)
    entering = []
    for claim in waiters:
        if not any(conflict(claim, one) for one in inside) and not 0 < limit <= len(inside):
            inside.append(claim)
            entering.append(claim)
    return entering


def last_come_first(holders: Iterable[Any], waiters: Iterable[Any], limit: int) -> list[Any]:
    """Serve the queue from its end."""
    return admit(holders, reversed(list(waiters)), limit)


def one_too_many(holders: Iterable[Any], waiters: Iterable[Any], limit: int) -> list[Any]:
    """Count the limit wrongly."""
    return admit(holders, waiters, limit + 1 if limit else 0)


def no_paths(holders: Iterable[Any], waiters: Iterable[Any], limit: int) -> list[Any]:
    """Let any two nodes of a tree exclude each other."""
    return admit(
        [one._replace(path=()) for one in holders],
        [one._replace(path=()) for one in waiters],
        limit,
    )


@pytest.mark.parametrize("rule", [starve_writers, last_come_first, one_too_many, no_paths])
def test_a_broken_rule_is_noticed(
    rule: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does a table that does not admit as `rules.admit` says."""
    monkeypatch.setattr(lock_table, "admit", rule)
    with pytest.raises((AssertionError, KeyError)):
        run_model(TableAdapter, examples=1000, shrink=False)
