"""(Generated from _async/test_faulty_renewal.py by tools/unasync.py: do not edit.) A renewal that fails in any way changes nothing but time: only that, or the engine, ends a lease
(S8, S9, S14, S17)."""

from __future__ import annotations

import logging

import pytest

import holdfast
from holdfast.clocks import boot_clock
from holdfast.events import Lost, Renewed, Resumed, Suspended
from holdfast.model import Claim, Grant, Queued
from holdfast.rules import DRIFT_FLOOR, DRIFT_RATE
from holdfast.testing.faults import (
    block,
    drop,
    fail,
    late,
    lose_push,
    lose_reply,
    out_of_turn,
    twice,
)
from tests._sync.faulty_suite import PATIENCE, TTL, FaultySuite


class TestRenewal(FaultySuite):
    """What the worker does by itself."""

    def test_a_lost_answer(self) -> None:
        """Suspended, then resumed with the same token; never lost."""
        told: list[str] = []
        heard = self.listen()
        self.plan(("renew", range(1, 3), lose_reply()))
        lease = self.take(
            on_suspended=lambda lease: told.append("suspended"),
            on_resumed=lambda lease: told.append("resumed"),
        )
        (suspended,) = heard.until(Suspended)
        assert lease.held
        assert 0 < suspended.remaining < TTL
        (resumed,) = heard.until(Resumed)
        assert resumed.token == suspended.token == lease.token
        assert not lease.suspended
        heard.until(Renewed, 2)
        assert lease.held
        assert told == ["suspended", "resumed"]
        assert not [event for event in heard.events if isinstance(event, Lost)]

    def test_silence_until_the_deadline(self) -> None:
        """Held to the deadline, not longer, and then lost because it was unreachable."""
        heard = self.listen()
        self.plan(("renew", None, drop(0.01)))
        asked = boot_clock()
        lease = self.take()
        deadline = lease._deadline
        assert deadline <= boot_clock() + TTL - (TTL * DRIFT_RATE + DRIFT_FLOOR)
        assert deadline >= asked + TTL - (TTL * DRIFT_RATE + DRIFT_FLOOR)
        heard.until(Suspended)
        assert lease.suspended
        while (held := lease.held) or boot_clock() < deadline:
            assert held or boot_clock() >= deadline, "given up before its time"
            lease.lost.wait(0.01)
        assert boot_clock() >= deadline
        assert lease.lost.wait(PATIENCE)
        assert lease.lost_reason == "unreachable"
        assert lease.remaining() == 0
        with pytest.raises(holdfast.LeaseLost, match="could not be reached"):
            lease.ensure_held()

    def test_an_answer_after_the_deadline(self) -> None:
        """A renewal that is confirmed too late does not bring the lease back."""
        self.plan(("renew", None, block(PATIENCE)))
        lease = self.take()
        assert lease.lost.wait(PATIENCE)
        self.plan()
        self.faulty.unblock()
        self.until(lambda: bool(self.faulty.answers("renew")))
        assert not lease.held
        assert lease.lost_reason == "unreachable"

    def test_a_holder_that_was_removed(self) -> None:
        """Broken by force, and told so: lost at once, forced."""
        lease = self.take(ttl=30)
        assert self.other.force_release("x") == 1
        assert lease.lost.wait(PATIENCE)
        assert lease.lost_reason == "forced"
        assert self.faulty.count("renew") == 0

    def test_a_holder_that_was_removed_without_a_word(self) -> None:
        """The next renewal finds the record gone: expired; it does not make a new one."""
        self.plan(("notice", None, lose_push()))
        lease = self.take()
        assert self.other.force_release("x") == 1
        assert lease.held
        assert lease.lost.wait(PATIENCE)
        assert lease.lost_reason == "expired"
        assert self.record().kind is None

    def test_a_holder_whose_place_was_taken(self) -> None:
        """The next renewal finds another owner: stolen; that one is left alone."""
        self.plan(("notice", None, lose_push()))
        lease = self.take()
        assert self.other.force_release("x") == 1
        successor = self.block()
        assert lease.lost.wait(PATIENCE)
        assert lease.lost_reason == "stolen"
        assert lease.release() is False
        assert self.holder() == (successor.owner, successor.token)

    def test_two_copies(self) -> None:
        """Executed twice, a renewal changes neither owner nor token."""
        heard = self.listen()
        self.plan(("renew", None, twice()))
        lease = self.take()
        heard.until(Renewed, 2)
        assert len(self.faulty.answers("renew")) == 4
        assert self.holder() == (lease.owner, lease.token)
        assert lease.held

    def test_an_answer_out_of_turn(self) -> None:
        """The answer to another renewal is not believed; the next one counts."""
        heard = self.listen()
        self.plan(("renew", 1, out_of_turn()))
        lease = self.take()
        heard.until(Resumed)
        assert lease.held

    def test_a_copy_that_lands_after_the_release(self) -> None:
        """A renewal never revives what was given back."""
        heard = self.listen()
        self.plan(("renew", 1, late()))
        lease = self.take()
        heard.until(Suspended)
        assert lease.release() is True
        self.faulty.land()
        assert self.record().kind is None

    def test_a_foreign_error(self, caplog: pytest.LogCaptureFixture) -> None:
        """An exception nobody foresaw is logged and does not end the worker."""
        heard = self.listen()
        self.plan(("renew", range(1, 3), fail(ValueError("driver"))))
        with caplog.at_level(logging.ERROR, "holdfast"):
            lease = self.take()
            heard.until(Renewed, 3)
        assert lease.held
        assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
        assert "driver" in caplog.text

    def test_one_lease_among_many(self) -> None:
        """Of several leases renewed in one request, only the one that is gone is lost."""
        heard = self.listen()
        self.plan(("notice", None, lose_push()))
        leases = [self.take(name) for name in ("x", "y", "z")]
        assert self.other.force_release("y") == 1
        assert leases[1].lost.wait(PATIENCE)
        heard.until(Renewed, 4)
        assert [lease.held for lease in leases] == [True, False, True]
        batches = {len(call.about) for call in self.faulty.calls if call.verb == "renew"}
        assert max(batches) > 1


class TestAsking(FaultySuite):
    """What the holder asks for."""

    def test_extend_to_more_without_an_answer(self) -> None:
        """OutcomeUnknown; the lease counts on the time it had."""
        lease = self.take(ttl=10)
        before = lease._deadline
        for number, fault in enumerate((lose_reply(), drop(0.0)), 1):
            self.plan(("renew", number, fault))
            with pytest.raises(holdfast.OutcomeUnknown):
                lease.extend(60)
            assert lease._deadline == before
            assert lease.suspended
        lease.extend(60)
        assert lease._deadline > before + 40

    def test_a_renewal_that_lands_after_an_extend(self) -> None:
        """What the extend confirmed stays confirmed: nobody else gets the lock before that."""
        heard = self.listen()
        self.plan(("renew", 1, late()))
        lease = self.take()
        heard.until(Suspended)
        lease.extend(60)
        self.faulty.land()
        successor = self.other.lock("x").acquire(timeout=2 * TTL)
        assert successor is None or not lease.held, "two holders"

    def test_extend_to_less_without_an_answer(self) -> None:
        """OutcomeUnknown; the lease counts on the shorter time, as the engine may do."""
        lease = self.take(ttl=60)
        self.plan(("renew", 1, lose_reply()))
        with pytest.raises(holdfast.OutcomeUnknown):
            lease.extend(10)
        assert 9 < lease.remaining() < 10
        assert lease.ttl == 10

    def test_a_margin_that_cannot_be_confirmed(self) -> None:
        """ensure_held(margin) without an answer is EngineUnavailable; the lease is still held."""
        lease = self.take(ttl=10)
        lease._deadline -= 5
        self.plan(("renew", 1, drop(0.0)))
        with pytest.raises(holdfast.EngineUnavailable, match="still held"):
            lease.ensure_held(margin=7)
        assert lease.held
        lease.ensure_held()
        lease.ensure_held(margin=7)
        assert lease.remaining() > 7

    def test_a_margin_of_a_lost_lease(self) -> None:
        """ensure_held(margin) hears from the engine that it is over: LeaseLost."""
        self.plan(("notice", None, lose_push()))
        lease = self.take(ttl=10)
        lease._deadline -= 5
        assert self.other.force_release("x") == 1
        with pytest.raises(holdfast.LeaseLost):
            lease.ensure_held(margin=7)
        assert lease.lost_reason == "expired"


class TestHaste(FaultySuite):
    """What the engine wishes: a renewal that does more now than later."""

    def hasten(self, owner: str, at: float) -> None:
        """Wish for a renewal at that instant."""
        self.faulty.inner.haste(owner, at)  # type: ignore[attr-defined]

    @pytest.mark.parametrize("when", ["before the lease is there", "while it is held"])
    def test_a_renewal_comes_early(self, when: str) -> None:
        """Once, at the instant that was named, and the next one a third of the TTL later."""
        ask = self.faulty.claim

        def claim_in_haste(claim: Claim, timeout: float) -> Grant | Queued:
            self.hasten(claim.owner, boot_clock() + 0.1)
            return ask(claim, timeout)

        heard = self.listen()
        if when == "before the lease is there":
            self.faulty.claim = claim_in_haste  # type: ignore[method-assign]
        lease = self.take(ttl=30)
        if when == "while it is held":
            self.hasten(lease.owner, boot_clock() + 0.1)
        (event,) = heard.until(Renewed)
        assert event.token == lease.token
        assert lease._renew_due > boot_clock() + 5

    def test_what_changes_nothing(self) -> None:
        """A wish that comes later than the renewal itself, for somebody else, or too late."""
        heard = self.listen()
        lease = self.take(ttl=30)
        due = lease._renew_due
        self.hasten(lease.owner, due + 1)
        self.hasten("somebody", boot_clock())
        assert lease.release() is True
        self.hasten(lease.owner, boot_clock())
        another = self.take("y", ttl=30)
        assert lease._renew_due == due
        assert another.release() is True
        assert not [event for event in heard.events if isinstance(event, Renewed)]
