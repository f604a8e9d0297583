"""(Generated from _async/conformance/semaphore.py by tools/unasync.py: do not edit.) Of a semaphore, exactly `limit` may be held at once (S3)."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast

from ...._concurrency import Event, sleep
from ...running import Spawned
from .base import Base

LIMIT = 3
WORKERS = 8
ROUNDS = 4


class SemaphoreTests(Base):
    """semaphore, from two clients."""

    def test_limit_may_hold_and_no_more(self) -> None:
        """Permits up to the limit are granted, the next one is refused until one comes back."""
        other = self.connect()
        locks = [client.semaphore("x", LIMIT) for client in (self.client, other)]
        permits = [self.take(locks[number % 2]) for number in range(LIMIT)]
        assert len({permit.token for permit in permits}) == LIMIT
        assert locks[0].try_acquire() is None
        assert locks[1].try_acquire() is None
        assert permits.pop().release() is True
        permits.append(self.take(locks[1]))
        assert locks[0].try_acquire() is None
        for permit in permits:
            assert permit.held
            assert permit.release() is True

    def test_limit_is_reached_and_never_exceeded(self) -> None:
        """Under contention `limit` callers are inside together, and never one more."""
        inside = peak = 0
        full = Event()

        def work(client: holdfast.Client) -> None:
            nonlocal inside, peak
            for _ in range(ROUNDS):
                permit = self.take(client.semaphore("x", LIMIT))
                inside += 1
                peak = max(peak, inside)
                if inside == LIMIT:
                    full.set()
                assert full.wait(self.harness.patience), f"{peak} of {LIMIT} were let in"
                sleep(0)
                inside -= 1
                permit.release()

        clients = [self.connect(), self.connect()]
        workers = [Spawned(work, clients[number % 2]) for number in range(WORKERS)]
        for worker in workers:
            worker.result()
        assert peak == LIMIT

    def test_waiters_enter_as_permits_come_back(self) -> None:
        """One permit that comes back lets in one waiter, not all."""
        lock = self.client.semaphore("x", 2)
        one, two = self.take(lock), self.take(lock)
        waiters = [self.queue(self.client, lock) for _ in range(2)]
        one.release()

        def moved_up() -> bool:
            snapshot = self.client.inspect("x")
            assert snapshot.waiters, "both were let in"
            return (len(snapshot.holders), len(snapshot.waiters)) == (2, 1)

        self.until(moved_up)
        two.release()
        for waiter in waiters:
            (waiter.result()).release()

    def test_breaking_all_permits(self) -> None:
        """force_release without a token ends every permit, and says how many."""
        other = self.connect()
        permits = [self.take(other.semaphore("x", LIMIT, ttl=self.ttl)) for _ in range(LIMIT)]
        assert self.client.force_release("x") == LIMIT
        for permit in permits:
            self.until_lost(permit)
        assert (self.client.inspect("x")).kind is None

    @pytest.mark.parametrize("limit", [0, -1, 1_000_001, True, 1.5, "2", None])
    def test_nonsense_limit_is_refused(self, limit: Any) -> None:
        """What is no count of permits raises one sentence about the limit."""
        with pytest.raises((ValueError, TypeError), match="limit must be"):
            self.client.semaphore("x", limit)

    def test_permits_cannot_be_re_entered(self) -> None:
        """A reentrant semaphore is refused: it would be unclear which permit is meant."""
        with pytest.raises(holdfast.NotSupported, match="x"):
            self.client.semaphore("x", 2, reentrant=True)
