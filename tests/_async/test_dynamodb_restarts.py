"""Holders, waiters and servers of DynamoDB that die: who comes next, and with which token."""

from __future__ import annotations

from holdfast.model import Grant, Outcome, Queued, Reason
from holdfast.testing.dynamodb_harness import DynamoDBHarness
from tests._async.dynamodb_suite import AsyncDynamoDBSuite

LONG = 30.0  # a TTL that nobody waits for


class TestTheDead(AsyncDynamoDBSuite):
    """Holders and waiters of whom nothing is heard any more (S13)."""

    harness = DynamoDBHarness()

    async def test_dead_holder_is_replaced_by_who_waits(self) -> None:
        """After a whole lease without a renewal, counted by the waiter; the token rises."""
        dead = await self.die_holding(self.claim("x"))
        lease = await self.take(self.connect().lock("x"))
        assert lease.token > dead.token
        assert await lease.release() is True

    async def test_who_tries_again_and_again_replaces_it_too(self) -> None:
        """A client that never waits sees a dead holder as well, by looking twice."""
        await self.die_holding(self.claim("x"))
        lock = self.connect().lock("x")

        async def tried() -> bool:
            lease = await lock.try_acquire()
            return lease is not None and bool(await lease.release())

        assert not await tried()
        await self.until(tried)

    async def test_who_tries_once_is_helped_by_who_tried_before(self) -> None:
        """Clients that look once and end find out together that a holder is dead."""
        await self.die_holding(self.claim("x"))

        async def tried() -> bool:
            client = self.connect()
            lease = await client.lock("x").try_acquire()
            done = lease is not None and bool(await lease.release())
            await client.close()
            return done

        assert not await tried()
        assert "s" in self.item("x")
        await self.until(tried)
        assert "s" not in self.item("x")

    async def test_dead_waiters_are_passed_over(self) -> None:
        """Each costs the time that a waiter has to find out, not the TTL that it asked for."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        for _ in range(2):
            dead = await self.client.engine.claim(self.claim("x", ttl=LONG), 5.0)
            assert isinstance(dead, Queued)
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=LONG), timeout=LONG)
        assert await lease.release() is True
        second = await waiter.result(LONG)
        assert await second.release() is True

    async def test_renewals_are_seen(self) -> None:
        """A holder that renews is never taken for dead, however long somebody watches."""
        lease = await self.take(self.client.lock("x", ttl=2 * self.ttl))
        other = self.connect()
        assert await other.lock("x").acquire(timeout=3 * self.ttl) is None
        assert lease.held
        assert await lease.release() is True

    async def test_replaced_holder_is_told(self) -> None:
        """Who comes back after its time finds another, and is lost."""
        old = self.claim("x")
        await self.grant(self.client, old)
        lease = await self.take(self.connect().lock("x"))
        (renewal,) = await self.client.engine.renew([old], 5.0)
        assert (renewal.outcome, renewal.reason) == (Outcome.LOST, Reason.STOLEN)
        assert await lease.release() is True

    async def test_shared_lock_forgets_the_dead_one_only(self) -> None:
        """Of several holders the silent one goes; the others keep what they have."""
        alive = await self.take(self.client.semaphore("s", 2, ttl=self.ttl))
        silent = self.claim("s", "semaphore-5")._replace(limit=2)
        answer = await self.client.engine.claim(silent, 5.0)
        assert isinstance(answer, Grant)
        third = await self.take(self.connect().semaphore("s", 2))
        assert alive.held
        assert sorted(self.holders("s")) == sorted([alive.owner, third.owner])
        assert await third.release() is True
        assert await alive.release() is True


class TestRestarts(AsyncDynamoDBSuite):
    """The server ends and starts again, with its data or with nothing."""

    harness = DynamoDBHarness(persist=True)

    async def test_with_its_data(self) -> None:
        """Leases go on, places in the queue stay, nobody holds twice."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=LONG))
        self.harness.restart(keep_data=True)
        assert lease.held
        assert self.holders("x") == [lease.owner]
        assert not waiter.done
        await lease.extend()
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True

    async def test_without_its_data(self) -> None:
        """The table is made anew; tokens rise all the same."""
        first = await self.cycle(self.client)
        self.harness.restart(keep_data=False)
        lease = await self.take(self.client.lock("x"))
        assert lease.token > first
        assert await lease.release() is True
