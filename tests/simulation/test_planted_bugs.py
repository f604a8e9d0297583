"""The simulation is worth what it catches: every planted bug must be found, by the right checker.

The list is that of reliability.md §3.6. Not here, because this world has no such thing: a
connection reused after a cancel (SimEngine throws it away; engines plant that in their own tests),
Redlock, ZooKeeper and DynamoDB (likewise), a fork that keeps its handle (simulated processes do not
fork). Added: bugs that the simulation itself has found in the core, so that it always will.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import lock_table, rules
from holdfast._async.acquire import _Patience
from holdfast._async.lease import HELD, LOST, AsyncLease
from holdfast._async.renewal import AsyncRenewer
from holdfast.lock_table import Holding, LockTable, Record
from holdfast.model import Claim, Outcome, Reason, Renewal
from holdfast.testing.loop import current_process
from holdfast.testing.simulation import engine, run_seed
from holdfast.testing.simulation.aftermath import unguarded_losses
from holdfast.testing.simulation.machine import LeaseClock, Machine
from holdfast.testing.simulation.register import Register

MOST_SEEDS = 700
Patch = pytest.MonkeyPatch


def release_without_owner_check(patch: Patch) -> None:
    """DEL without comparing the owner: whoever holds is thrown out."""
    release = LockTable.release

    def careless(self: LockTable, claim: Claim, linger: float = 0.0) -> bool:
        record = self._records.get(claim.key)
        if record is not None and claim.owner not in record.holders and record.holders:
            claim = next(iter(record.holders.values())).claim
        return release(self, claim, linger)

    patch.setattr(LockTable, "release", careless)


def renew_as_set(patch: Patch) -> None:
    """A renewal writes the owner, whoever holds now."""
    renew = LockTable._renew

    def careless(self: LockTable, claim: Claim, now: float) -> Reason | None:
        if renew(self, claim, now) is not None:
            _put_back(self, claim, now, self._records.setdefault(claim.key, Record(claim)))
        return None

    patch.setattr(LockTable, "_renew", careless)


def renew_revives_released(patch: Patch) -> None:
    """A renewal that comes after the release puts the owner back, if nobody else holds."""
    renew = LockTable._renew

    def careless(self: LockTable, claim: Claim, now: float) -> Reason | None:
        reason = renew(self, claim, now)
        if reason is not None and claim.key not in self._records:
            self._records[claim.key] = record = Record(claim)
            _put_back(self, claim, now, record)
            return None
        return reason

    patch.setattr(LockTable, "_renew", careless)


def _put_back(table: LockTable, claim: Claim, now: float, record: Record) -> None:
    record.holders.clear()
    record.holders[claim.owner] = holding = Holding(claim, table.floor, now, _Nobody())
    record.soonest = holding.expires


class _Nobody:
    """The channel of an owner that nobody can reach."""

    def queued(self, claim: Claim) -> None: ...

    def granted(self, claim: Claim, token: int, at: float) -> bool:
        return False

    def revoked(self, owner: str, reason: Reason) -> None: ...


def deadline_from_reply(patch: Patch) -> None:
    """Validity is counted from the answer, not from the request."""

    def late(sent: float, ttl: float) -> float:
        process = current_process()
        assert process is not None
        return rules.validity(process.clock(), ttl)

    patch.setattr(engine, "validity", late)


class _SteppingClock(LeaseClock):
    """A wall clock that is set back by a second every three."""

    def __call__(self) -> float:
        return super().__call__() - (self._time() // 3.0)


def wall_clock_deadline(patch: Patch) -> None:
    """Deadlines live on a clock that steps."""

    def clock(self: Machine) -> LeaseClock:
        return _SteppingClock(self.world.loop.time, self.clock)

    patch.setattr(Machine, "lease_clock", clock)


def lost_is_reversible(patch: Patch) -> None:
    """A renewal that is answered late brings a lost lease back."""
    apply = AsyncRenewer._apply

    def reviving(
        self: AsyncRenewer, lease: AsyncLease, claim: Claim, answer: Renewal, *more: Any
    ) -> None:
        if answer.outcome is Outcome.RENEWED and lease._state == LOST:
            lease._state, lease._reason = HELD, None
            lease._not_after = lease._deadline = answer.not_after
        apply(self, lease, claim, answer, *more)

    patch.setattr(AsyncRenewer, "_apply", reviving)


def no_release_after_ambiguous_acquire(patch: Patch) -> None:
    """An attempt that ends without an answer is forgotten."""
    patch.setattr(AsyncRenewer, "give_back", lambda *_, **__: None)


def watchdog_dies(patch: Patch) -> None:
    """The first renewal that fails ends the worker."""

    async def fragile(self: AsyncRenewer, leases: list[AsyncLease]) -> None:
        claims = [lease._claim for lease in leases]
        sent = self._clock()
        answers = await self._runtime.engine.renew(claims, claims[0].ttl / 3)
        for lease, claim, answer in zip(leases, claims, answers, strict=True):
            self._apply(lease, claim, answer, sent)

    patch.setattr(AsyncRenewer, "_renew", fragile)


def counter_restarts(patch: Patch) -> None:
    """Tokens are a plain counter, lost with the data."""
    patch.setattr(lock_table, "next_token", lambda floor, micros: floor + 1)


def guard_write_only(patch: Patch) -> None:
    """The guard looks at the token when something is written, not when the work begins."""
    patch.setattr(Register, "begin", lambda self, token: self.value)


def pushed_from_receipt(patch: Patch) -> None:
    """A pushed grant counts from its arrival (against S10)."""

    def careless(*, received: float, ttl: float, **_: float) -> float:
        return rules.validity(received, ttl)

    patch.setattr(engine, "pushed_validity", careless)


def pushed_before_anchor(patch: Patch) -> None:
    """A push from an earlier stay in the queue counts as if it were of this one."""
    honest = rules.pushed_validity

    def careless(*, anchor_server: float, granted_server: float, **rest: float) -> float:
        granted = max(granted_server, anchor_server)
        return honest(anchor_server=anchor_server, granted_server=granted, **rest)

    patch.setattr(engine, "pushed_validity", careless)


def old_renewal_shortens(patch: Patch) -> None:
    """A renewal that was sent before an extend, and comes after it, takes the extension back."""
    renew = LockTable._renew

    def careless(self: LockTable, claim: Claim, now: float) -> Reason | None:
        reason = renew(self, claim, now)
        if reason is None:
            self._records[claim.key].holders[claim.owner].expires = now + claim.ttl
        return reason

    patch.setattr(LockTable, "_renew", careless)


def impatient_waiter(patch: Patch) -> None:
    """Silence is counted from the start of the wait, not from the last request."""

    def due(self: _Patience) -> float:
        return min(self._give_up, self._started + self._runtime.connect_timeout)

    patch.setattr(_Patience, "_answer_due", due)


def tombstones_off(patch: Patch) -> None:
    """A withdrawn owner leaves no trace, so that a late copy of its claim enters."""
    patch.setattr(LockTable, "_bury", lambda self, owner, now: None)


PLANTED: dict[Callable[[Patch], None], str] = {
    release_without_owner_check: "E",
    renew_as_set: "E",
    renew_revives_released: "R",
    deadline_from_reply: "V",
    wall_clock_deadline: "E",
    lost_is_reversible: "L1",
    no_release_after_ambiguous_acquire: "W",
    watchdog_dies: "L2",
    counter_restarts: "T",
    guard_write_only: "G",
    pushed_from_receipt: "V",
    pushed_before_anchor: "V",
    tombstones_off: "W",
    old_renewal_shortens: "V",
    impatient_waiter: "L2",
}


@pytest.mark.parametrize(
    ("bug", "checker"), PLANTED.items(), ids=lambda value: getattr(value, "__name__", "")
)
def test_planted_bug_is_caught(
    bug: Callable[[Patch], None],
    checker: str,
    monkeypatch: Patch,
    record_property: Callable[[str, object], None],
) -> None:
    """Some seed breaks the promise that the bug breaks."""
    bug(monkeypatch)
    others: set[str] = set()
    for seed in range(MOST_SEEDS):
        found = {violation.checker for violation in run_seed(seed).violations}
        if checker in found:
            record_property("planted", f"{bug.__name__}: {checker} after {seed + 1} seeds")
            return
        others |= found
    pytest.fail(f"{bug.__doc__} {checker} stayed silent for {MOST_SEEDS} seeds; others: {others}")


def test_unguarded_register_loses_updates(
    record_property: Callable[[str, object], None],
) -> None:
    """The negative control: without a guard, pauses cost updates, also with a right lock."""
    for seed in range(MOST_SEEDS):
        if unguarded_losses(run_seed(seed).history.records):
            record_property("planted", f"no guard at all: updates lost after {seed + 1} seeds")
            return
    pytest.fail("no seed lost an update: the world is too kind to show what guards are for")
