"""Of a semaphore, exactly `limit` may be held at once (S3)."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast.aio as holdfast

from ...._concurrency import AsyncEvent, asleep
from ...running import AsyncSpawned
from .base import AsyncBase

LIMIT = 3
WORKERS = 8
ROUNDS = 4


class AsyncSemaphoreTests(AsyncBase):
    """semaphore, from two clients."""

    async def test_limit_may_hold_and_no_more(self) -> None:
        """Permits up to the limit are granted, the next one is refused until one comes back."""
        other = self.connect()
        locks = [client.semaphore("x", LIMIT) for client in (self.client, other)]
        permits = [await self.take(locks[number % 2]) for number in range(LIMIT)]
        assert len({permit.token for permit in permits}) == LIMIT
        assert await locks[0].try_acquire() is None
        assert await locks[1].try_acquire() is None
        assert await permits.pop().release() is True
        permits.append(await self.take(locks[1]))
        assert await locks[0].try_acquire() is None
        for permit in permits:
            assert permit.held
            assert await permit.release() is True

    async def test_limit_is_reached_and_never_exceeded(self) -> None:
        """Under contention `limit` callers are inside together, and never one more."""
        inside = peak = 0
        full = AsyncEvent()

        async def work(client: holdfast.Client) -> None:
            nonlocal inside, peak
            for _ in range(ROUNDS):
                permit = await self.take(client.semaphore("x", LIMIT))
                inside += 1
                peak = max(peak, inside)
                if inside == LIMIT:
                    full.set()
                assert await full.wait(self.harness.patience), f"{peak} of {LIMIT} were let in"
                await asleep(0)
                inside -= 1
                await permit.release()

        clients = [self.connect(), self.connect()]
        workers = [AsyncSpawned(work, clients[number % 2]) for number in range(WORKERS)]
        for worker in workers:
            await worker.result()
        assert peak == LIMIT

    async def test_waiters_enter_as_permits_come_back(self) -> None:
        """One permit that comes back lets in one waiter, not all."""
        lock = self.client.semaphore("x", 2)
        one, two = await self.take(lock), await self.take(lock)
        waiters = [await self.queue(self.client, lock) for _ in range(2)]
        await one.release()

        async def moved_up() -> bool:
            snapshot = await self.client.inspect("x")
            assert snapshot.waiters, "both were let in"
            return (len(snapshot.holders), len(snapshot.waiters)) == (2, 1)

        await self.until(moved_up)
        await two.release()
        for waiter in waiters:
            await (await waiter.result()).release()

    async def test_breaking_all_permits(self) -> None:
        """force_release without a token ends every permit, and says how many."""
        other = self.connect()
        permits = [await self.take(other.semaphore("x", LIMIT, ttl=self.ttl)) for _ in range(LIMIT)]
        assert await self.client.force_release("x") == LIMIT
        for permit in permits:
            await self.until_lost(permit)
        assert (await self.client.inspect("x")).kind is None

    @pytest.mark.parametrize("limit", [0, -1, 1_000_001, True, 1.5, "2", None])
    async def test_nonsense_limit_is_refused(self, limit: Any) -> None:
        """What is no count of permits raises one sentence about the limit."""
        with pytest.raises((ValueError, TypeError), match="limit must be"):
            self.client.semaphore("x", limit)

    async def test_permits_cannot_be_re_entered(self) -> None:
        """A reentrant semaphore is refused: it would be unclear which permit is meant."""
        with pytest.raises(holdfast.NotSupported, match="x"):
            self.client.semaphore("x", 2, reentrant=True)
