"""(Generated from _async/conformance/losing.py by tools/unasync.py: do not edit.) A lease that is taken away behind its holder's back: who is told, how, and that it is final."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast

from ...._concurrency import Event
from ....model import Reason
from ...running import Body, Spawned
from .base import Base

WAYS = ("force", "release", "replaced")
every_way = pytest.mark.parametrize("way", WAYS)


class LosingTests(Base):
    """Loss, as the holder sees it (S17, S26)."""

    def short(self, name: str = "x", **options: Any) -> holdfast.Lock:
        """Return a lock whose holder hears of a loss soon, at the latest by renewal."""
        return self.client.lock(name, ttl=self.ttl, timeout=self.harness.patience, **options)

    def take_away(self, lease: holdfast.Lease, way: str = "force") -> set[Reason]:
        """Let somebody else end the hold, and return the reasons that fit."""
        if way == "force":
            assert self.connect().force_release(lease.name, lease.token) == 1
            told = {Reason.FORCED}
            # Without push it is found out by renewal, which sees only that the record is gone.
            return told if self.client.guarantees.push else told | {Reason.EXPIRED}
        claim = self.claim_behind(lease)
        if way == "release":
            assert self.client.engine.release(claim, self.harness.patience) is True
            return {Reason.EXPIRED}
        # By somebody who waits: a renewal that comes in between would find the record gone.
        other = self.connect()
        waiter = self.queue(other, other.lock(lease.name))
        assert self.client.engine.release(claim, self.harness.patience) is True
        self.successor = waiter.result()
        return {Reason.STOLEN}

    @every_way
    def test_loss_is_noticed(self, way: str) -> None:
        """The event is set, `held` is false, on_lost is called once, and the reason fits."""
        called: list[tuple[holdfast.Lease, Reason]] = []
        done = Event()

        def note(lease: holdfast.Lease, reason: Reason) -> None:
            called.append((lease, reason))
            done.set()

        lease = self.take(self.short(on_lost=note))
        reasons = self.take_away(lease, way)
        self.until_lost(lease)
        assert not lease.held
        assert lease.remaining() == 0
        assert not lease.suspended
        assert lease.lost_reason in reasons
        assert not lease.released
        assert done.wait(self.harness.patience)
        assert called == [(lease, lease.lost_reason)]

    @every_way
    def test_lost_is_final(self, way: str) -> None:
        """Nothing brings a lost lease back, and it says the same for ever."""
        lease = self.take(self.short())
        reasons = self.take_away(lease, way)
        self.until_lost(lease)
        for call in (lease.ensure_held, lease.extend):
            error = self.raises(holdfast.LeaseLost, call)
            assert error.name == "x"
            assert error.token == lease.token
            assert error.engine == self.client.engine.location
            assert error.reason in reasons
        assert lease.release() is False
        assert lease.release() is False
        assert lease.lost.is_set()
        assert lease.lost_reason in reasons
        assert not lease.held

    @every_way
    def test_body_is_told_and_leaving_raises(self, way: str) -> None:
        """A task's body is cancelled, a thread's sees `lost`; leaving `with` raises LeaseLost."""
        entered = Event()
        leases: list[holdfast.Lease] = []

        def body() -> None:
            with self.short() as lease:
                leases.append(lease)
                entered.set()
                Body.work_on(lease)

        inside = Spawned(body)
        assert entered.wait(self.harness.patience)
        reasons = self.take_away(leases[0], way)
        error = self.raises(holdfast.LeaseLost, inside.result)
        assert error.reason in reasons
        assert error.token == leases[0].token

    def test_body_that_ended_well_raises_too(self) -> None:
        """Work that finished under a lost lease must not look as if all were well."""

        def body() -> None:
            with self.short(cancel_on_loss=False) as lease:
                self.take_away(lease)
                self.until_lost(lease)

        self.raises(holdfast.LeaseLost, body)

    def test_error_of_the_body_wins(self) -> None:
        """What the body raised after the loss is what the caller sees."""

        def body() -> None:
            with self.short(cancel_on_loss=False) as lease:
                self.take_away(lease)
                self.until_lost(lease)
                raise KeyError("the body's own")

        error = self.raises(KeyError, body)
        assert error.args == ("the body's own",)

    def test_lease_of_acquire_raises_on_leaving_too(self) -> None:
        """`with lock.acquire() as lease` is the same as `with lock` when the lease is lost."""

        def body() -> None:
            lease = self.take(self.short(cancel_on_loss=False))
            with lease:
                self.take_away(lease)
                self.until_lost(lease)

        self.raises(holdfast.LeaseLost, body)

    def test_entering_a_lost_lease_is_refused(self) -> None:
        """`with lease` on one that is over raises before the body runs."""
        lost = self.take(self.short())
        self.take_away(lost)
        self.until_lost(lost)
        released = self.take(self.client.lock("y"))
        released.release()

        def enter(lease: holdfast.Lease) -> None:
            with lease:
                pytest.fail("entered a lease that is over")

        self.raises(holdfast.LeaseLost, enter, lost)
        self.raises(holdfast.LeaseLost, enter, released)

    def test_release_finds_out_that_it_was_gone(self) -> None:
        """A release that the engine answers with "not yours" is False, and marks a loss (S34)."""
        lease = self.take(self.client.lock("x", ttl=20))
        self.take_away(lease, "release")
        assert lease.release() is False
        assert lease.lost.is_set()
        assert lease.lost_reason is Reason.EXPIRED

    def test_leaving_finds_out_that_it_was_gone(self) -> None:
        """A body whose lock was gone by the time it left learns of it by LeaseLost."""

        def body() -> None:
            with self.client.lock("x", ttl=20, cancel_on_loss=False) as lease:
                self.take_away(lease, "replaced")

        self.raises(holdfast.LeaseLost, body)
        assert self.successor.held
        self.successor.release()

    def test_own_release_is_no_loss(self) -> None:
        """Releasing it yourself sets no event, calls nobody, and leaving `with` raises nothing."""
        called: list[object] = []
        lock = self.client.lock("x", on_lost=lambda lease, reason: called.append(reason))
        with lock as lease:
            assert lease.release() is True
        assert not lease.lost.is_set()
        assert lease.lost_reason is None
        self.client.close()  # waits for callbacks
        assert called == []

    def test_others_are_not_touched(self) -> None:
        """The loss of one lease leaves every other lease of the client as it was."""
        lost = self.take(self.short("a"))
        kept = self.take(self.short("b"))
        self.take_away(lost)
        self.until_lost(lost)
        assert not kept.lost.wait(self.ttl)
        assert kept.held
        assert kept.release() is True

    def test_all_who_wait_for_the_loss_are_told(self) -> None:
        """`lost` can be waited for by many, and by who comes too late."""
        lease = self.take(self.short())
        waiters = [Spawned(lease.lost.wait, self.harness.patience) for _ in range(3)]
        assert not lease.lost.wait(0.01)
        self.take_away(lease)
        for waiter in waiters:
            assert waiter.result() is True
        assert lease.lost.wait(0) is True

    def test_failing_callback_harms_nobody(self) -> None:
        """An on_lost that raises is logged; the next loss is still told."""
        told = Event()

        def fail(lease: holdfast.Lease, reason: Reason) -> None:
            raise RuntimeError("a callback with a bug")

        first = self.take(self.short("a", on_lost=fail))
        second = self.take(self.short("b", on_lost=lambda lease, reason: told.set()))
        self.take_away(first)
        self.take_away(second)
        assert told.wait(self.harness.patience)
        assert first.lost.is_set()
