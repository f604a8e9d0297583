"""(Generated from _async/conformance/outages.py by tools/unasync.py: do not edit.) When the engine cannot be reached: what is held stays held until its time is over (S7, S9).

These need a harness with `cut` and `heal`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import holdfast

from ...._concurrency import sleep
from ....model import Reason
from ...collecting import needs
from ...running import Body, Spawned, elapsed
from .base import Base


class OutageTests(Base):
    """A cut link, and what becomes of leases, waiters and calls."""

    def conduct(self, test: Callable[..., None], **arguments: Any) -> None:
        """Run one test, and heal whatever it cut."""
        try:
            super().conduct(test, **arguments)
        finally:
            if self.harness.supports("heal"):
                self.harness.heal()

    @needs("cut", "heal")
    def test_short_cut_suspends_and_resumes(self) -> None:
        """A renewal without answer suspends the lease, still held; the next answer resumes it."""
        told: list[str] = []
        heard = self.listen(self.client)
        lease = self.take(
            self.client.lock(
                "x",
                ttl=4 * self.ttl,
                on_suspended=lambda lease: told.append("suspended"),
                on_resumed=lambda lease: told.append("resumed"),
            )
        )
        token = lease.token
        self.harness.cut()
        heard.until(holdfast.events.Suspended)
        assert lease.suspended
        assert lease.held
        self.harness.heal()
        heard.until(holdfast.events.Resumed)
        assert not lease.suspended
        assert lease.held
        assert lease.token == token
        assert lease.release() is True
        self.client.close()
        assert told == ["suspended", "resumed"]

    @needs("cut", "heal")
    def test_long_cut_is_a_loss(self) -> None:
        """Once its time is over the lease is lost as unreachable, never later than the engine."""
        lease = self.take(self.client.lock("x", ttl=self.ttl))
        self.harness.cut()
        self.until_lost(lease)
        assert lease.lost_reason is Reason.UNREACHABLE
        assert not lease.held
        assert not lease.suspended
        self.harness.heal()
        second = self.take(self.connect().lock("x"))
        assert second.token > lease.token
        assert not lease.held, "lost is final"
        second.release()

    @needs("cut", "heal")
    def test_body_learns_of_a_long_cut(self) -> None:
        """The body is told, and leaving raises LeaseLost without waiting for the engine."""

        def body() -> None:
            with self.client.lock("x", ttl=self.ttl) as lease:
                self.harness.cut()
                Body.work_on(lease)

        error = self.raises(holdfast.LeaseLost, body)
        assert error.reason is Reason.UNREACHABLE

    @needs("cut", "heal")
    @pytest.mark.parametrize("timeout", [0, 0.1])
    def test_acquire_says_that_there_is_no_answer(self, timeout: float) -> None:
        """No answer within the time-out is EngineUnavailable, never None, and holds nothing."""
        client = self.connect(connect_timeout=0.5)
        client.ping()
        self.harness.cut()
        started = time.monotonic()
        error = self.raises(
            holdfast.EngineUnavailable, lambda: client.lock("x").acquire(timeout=timeout)
        )
        assert isinstance(error, ConnectionError)
        assert error.name == "x"
        assert elapsed(started) < self.harness.patience
        self.harness.heal()
        self.until_idle("x")
        (self.take(self.client.lock("x"))).release()

    @needs("cut", "heal")
    def test_waiter_survives_a_short_cut(self) -> None:
        """A place in the queue outlives a short cut: the waiter gets in afterwards."""
        self.die_holding(self.claim("x"))
        waiter = self.queue(self.client, self.client.lock("x"))
        self.harness.cut()
        sleep(1.5 * self.ttl)  # it has asked in vain by now
        assert not waiter.done
        self.harness.heal()
        (waiter.result()).release()

    @needs("cut", "heal")
    def test_release_goes_on_in_the_background(self) -> None:
        """Without an answer release is None at once, and the lock is free after the cut (S34)."""
        lease = self.take(self.client.lock("x", ttl=30))
        self.harness.cut()
        assert lease.release() is None
        assert not lease.held
        self.harness.heal()
        self.until_idle("x")

    @needs("cut", "heal")
    def test_calls_say_that_there_is_no_answer(self) -> None:
        """Looking, ensure_held with a margin and extend raise what they must; it is still held."""
        client = self.connect(connect_timeout=0.3)
        lease = self.take(client.lock("x", ttl=20))
        self.harness.cut()
        self.raises(holdfast.EngineUnavailable, client.inspect, "x")
        self.raises(holdfast.EngineUnavailable, client.locks)
        lease.ensure_held()
        sleep(0.05)
        self.raises(holdfast.EngineUnavailable, lease.ensure_held, 19.76)
        self.raises(holdfast.OutcomeUnknown, lease.extend)
        assert lease.held
        self.harness.heal()
        lease.extend()
        assert lease.release() is True

    @needs("cut", "heal")
    def test_close_does_not_wait_for_ever(self) -> None:
        """Closing while cut off ends within its time-out; waiters are woken all the same."""
        client = self.connect()
        lease = self.take(self.client.lock("x"))
        mine = self.take(client.lock("y"))
        waiter = self.queue(client, client.lock("x"))
        self.harness.cut()
        closing = Spawned(client.close, timeout=0.5)
        closing.result(self.harness.patience)
        self.raises(holdfast.ClientClosed, waiter.result)
        assert mine.lost_reason is Reason.CLOSED
        self.harness.heal()
        assert lease.held
        lease.release()
