"""A renewal that fails in any way changes nothing but time: only that, or the engine, ends a lease
(S8, S9, S14, S17)."""

from __future__ import annotations

import logging

import pytest

import holdfast.aio as holdfast
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
from tests._async.faulty_suite import PATIENCE, TTL, AsyncFaultySuite


class TestRenewal(AsyncFaultySuite):
    """What the worker does by itself."""

    async def test_a_lost_answer(self) -> None:
        """Suspended, then resumed with the same token; never lost."""
        told: list[str] = []
        heard = self.listen()
        self.plan(("renew", range(1, 3), lose_reply()))
        lease = await self.take(
            on_suspended=lambda lease: told.append("suspended"),
            on_resumed=lambda lease: told.append("resumed"),
        )
        (suspended,) = await heard.until(Suspended)
        assert lease.held
        assert 0 < suspended.remaining < TTL
        (resumed,) = await heard.until(Resumed)
        assert resumed.token == suspended.token == lease.token
        assert not lease.suspended
        await heard.until(Renewed, 2)
        assert lease.held
        assert told == ["suspended", "resumed"]
        assert not [event for event in heard.events if isinstance(event, Lost)]

    async def test_silence_until_the_deadline(self) -> None:
        """Held to the deadline, not longer, and then lost because it was unreachable."""
        heard = self.listen()
        self.plan(("renew", None, drop(0.01)))
        asked = boot_clock()
        lease = await self.take()
        deadline = lease._deadline
        assert deadline <= boot_clock() + TTL - (TTL * DRIFT_RATE + DRIFT_FLOOR)
        assert deadline >= asked + TTL - (TTL * DRIFT_RATE + DRIFT_FLOOR)
        await heard.until(Suspended)
        assert lease.suspended
        while (held := lease.held) or boot_clock() < deadline:
            assert held or boot_clock() >= deadline, "given up before its time"
            await lease.lost.wait(0.01)
        assert boot_clock() >= deadline
        assert await lease.lost.wait(PATIENCE)
        assert lease.lost_reason == "unreachable"
        assert lease.remaining() == 0
        with pytest.raises(holdfast.LeaseLost, match="could not be reached"):
            await lease.ensure_held()

    async def test_an_answer_after_the_deadline(self) -> None:
        """A renewal that is confirmed too late does not bring the lease back."""
        self.plan(("renew", None, block(PATIENCE)))
        lease = await self.take()
        assert await lease.lost.wait(PATIENCE)
        self.plan()
        self.faulty.unblock()
        await self.until(lambda: bool(self.faulty.answers("renew")))
        assert not lease.held
        assert lease.lost_reason == "unreachable"

    async def test_a_holder_that_was_removed(self) -> None:
        """Broken by force, and told so: lost at once, forced."""
        lease = await self.take(ttl=30)
        assert await self.other.force_release("x") == 1
        assert await lease.lost.wait(PATIENCE)
        assert lease.lost_reason == "forced"
        assert self.faulty.count("renew") == 0

    async def test_a_holder_that_was_removed_without_a_word(self) -> None:
        """The next renewal finds the record gone: expired; it does not make a new one."""
        self.plan(("notice", None, lose_push()))
        lease = await self.take()
        assert await self.other.force_release("x") == 1
        assert lease.held
        assert await lease.lost.wait(PATIENCE)
        assert lease.lost_reason == "expired"
        assert self.record().kind is None

    async def test_a_holder_whose_place_was_taken(self) -> None:
        """The next renewal finds another owner: stolen; that one is left alone."""
        self.plan(("notice", None, lose_push()))
        lease = await self.take()
        assert await self.other.force_release("x") == 1
        successor = await self.block()
        assert await lease.lost.wait(PATIENCE)
        assert lease.lost_reason == "stolen"
        assert await lease.release() is False
        assert self.holder() == (successor.owner, successor.token)

    async def test_two_copies(self) -> None:
        """Executed twice, a renewal changes neither owner nor token."""
        heard = self.listen()
        self.plan(("renew", None, twice()))
        lease = await self.take()
        await heard.until(Renewed, 2)
        assert len(self.faulty.answers("renew")) == 4
        assert self.holder() == (lease.owner, lease.token)
        assert lease.held

    async def test_an_answer_out_of_turn(self) -> None:
        """The answer to another renewal is not believed; the next one counts."""
        heard = self.listen()
        self.plan(("renew", 1, out_of_turn()))
        lease = await self.take()
        await heard.until(Resumed)
        assert lease.held

    async def test_a_copy_that_lands_after_the_release(self) -> None:
        """A renewal never revives what was given back."""
        heard = self.listen()
        self.plan(("renew", 1, late()))
        lease = await self.take()
        await heard.until(Suspended)
        assert await lease.release() is True
        await self.faulty.land()
        assert self.record().kind is None

    async def test_a_foreign_error(self, caplog: pytest.LogCaptureFixture) -> None:
        """An exception nobody foresaw is logged and does not end the worker."""
        heard = self.listen()
        self.plan(("renew", range(1, 3), fail(ValueError("driver"))))
        with caplog.at_level(logging.ERROR, "holdfast"):
            lease = await self.take()
            await heard.until(Renewed, 3)
        assert lease.held
        assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
        assert "driver" in caplog.text

    async def test_one_lease_among_many(self) -> None:
        """Of several leases renewed in one request, only the one that is gone is lost."""
        heard = self.listen()
        self.plan(("notice", None, lose_push()))
        leases = [await self.take(name) for name in ("x", "y", "z")]
        assert await self.other.force_release("y") == 1
        assert await leases[1].lost.wait(PATIENCE)
        await heard.until(Renewed, 4)
        assert [lease.held for lease in leases] == [True, False, True]
        batches = {len(call.about) for call in self.faulty.calls if call.verb == "renew"}
        assert max(batches) > 1


class TestAsking(AsyncFaultySuite):
    """What the holder asks for."""

    async def test_extend_to_more_without_an_answer(self) -> None:
        """OutcomeUnknown; the lease counts on the time it had."""
        lease = await self.take(ttl=10)
        before = lease._deadline
        for number, fault in enumerate((lose_reply(), drop(0.0)), 1):
            self.plan(("renew", number, fault))
            with pytest.raises(holdfast.OutcomeUnknown):
                await lease.extend(60)
            assert lease._deadline == before
            assert lease.suspended
        await lease.extend(60)
        assert lease._deadline > before + 40

    async def test_a_renewal_that_lands_after_an_extend(self) -> None:
        """What the extend confirmed stays confirmed: nobody else gets the lock before that."""
        heard = self.listen()
        self.plan(("renew", 1, late()))
        lease = await self.take()
        await heard.until(Suspended)
        await lease.extend(60)
        await self.faulty.land()
        successor = await self.other.lock("x").acquire(timeout=2 * TTL)
        assert successor is None or not lease.held, "two holders"

    async def test_extend_to_less_without_an_answer(self) -> None:
        """OutcomeUnknown; the lease counts on the shorter time, as the engine may do."""
        lease = await self.take(ttl=60)
        self.plan(("renew", 1, lose_reply()))
        with pytest.raises(holdfast.OutcomeUnknown):
            await lease.extend(10)
        assert 9 < lease.remaining() < 10
        assert lease.ttl == 10

    async def test_a_margin_that_cannot_be_confirmed(self) -> None:
        """ensure_held(margin) without an answer is EngineUnavailable; the lease is still held."""
        lease = await self.take(ttl=10)
        lease._deadline -= 5
        self.plan(("renew", 1, drop(0.0)))
        with pytest.raises(holdfast.EngineUnavailable, match="still held"):
            await lease.ensure_held(margin=7)
        assert lease.held
        await lease.ensure_held()
        await lease.ensure_held(margin=7)
        assert lease.remaining() > 7

    async def test_a_margin_of_a_lost_lease(self) -> None:
        """ensure_held(margin) hears from the engine that it is over: LeaseLost."""
        self.plan(("notice", None, lose_push()))
        lease = await self.take(ttl=10)
        lease._deadline -= 5
        assert await self.other.force_release("x") == 1
        with pytest.raises(holdfast.LeaseLost):
            await lease.ensure_held(margin=7)
        assert lease.lost_reason == "expired"


class TestHaste(AsyncFaultySuite):
    """What the engine wishes: a renewal that does more now than later."""

    def hasten(self, owner: str, at: float) -> None:
        """Wish for a renewal at that instant."""
        self.faulty.inner.haste(owner, at)  # type: ignore[attr-defined]

    @pytest.mark.parametrize("when", ["before the lease is there", "while it is held"])
    async def test_a_renewal_comes_early(self, when: str) -> None:
        """Once, at the instant that was named, and the next one a third of the TTL later."""
        ask = self.faulty.claim

        async def claim_in_haste(claim: Claim, timeout: float) -> Grant | Queued:
            self.hasten(claim.owner, boot_clock() + 0.1)
            return await ask(claim, timeout)

        heard = self.listen()
        if when == "before the lease is there":
            self.faulty.claim = claim_in_haste  # type: ignore[method-assign]
        lease = await self.take(ttl=30)
        if when == "while it is held":
            self.hasten(lease.owner, boot_clock() + 0.1)
        (event,) = await heard.until(Renewed)
        assert event.token == lease.token
        assert lease._renew_due > boot_clock() + 5

    async def test_what_changes_nothing(self) -> None:
        """A wish that comes later than the renewal itself, for somebody else, or too late."""
        heard = self.listen()
        lease = await self.take(ttl=30)
        due = lease._renew_due
        self.hasten(lease.owner, due + 1)
        self.hasten("somebody", boot_clock())
        assert await lease.release() is True
        self.hasten(lease.owner, boot_clock())
        another = await self.take("y", ttl=30)
        assert lease._renew_due == due
        assert await another.release() is True
        assert not [event for event in heard.events if isinstance(event, Renewed)]
