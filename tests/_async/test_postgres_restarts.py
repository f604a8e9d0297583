"""PostgreSQL servers that stop, start again or are replaced: what is kept, what is lost, who is
told."""

from __future__ import annotations

import holdfast.aio as holdfast
from holdfast.model import Fault, Mode, Reason
from holdfast.testing.postgres_harness import PostgresHarness
from holdfast.testing.running import AsyncSpawned
from tests._async.postgres_suite import AsyncPostgresSuite

LONG = 60.0  # a TTL that nobody waits for


class TestRestarts(AsyncPostgresSuite):
    """A server that is killed, and comes back with what it has committed, or with nothing."""

    harness = PostgresHarness()

    async def test_lease_goes_on(self) -> None:
        """The lease is renewed under the same token; who waited asks again and is handed the
        lock. That exclusion survives a restart is a promise."""
        assert Fault.SERVER_RESTART in self.client.guarantees.exclusive
        heard = self.listen(self.client)
        lease = await self.take(self.client.lock("x", ttl=9))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=9))
        self.harness.restart(keep_data=True)
        heard.events.clear()
        await heard.until(holdfast.events.Renewed)
        assert lease.held
        assert lease.token == self.floor("x")
        assert not waiter.done
        await self.until_so(lambda: self.waiting("x") == 1)  # the queue was not kept
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True
        await self.until_free("x")

    async def test_queue_that_a_crash_has_emptied(self) -> None:
        """Readers and permits are let in although the row still counts waiters that are gone."""
        readers = self.claim("r", ttl=LONG, mode=Mode.SHARED)
        await self.grant(self.client, readers)
        await self.client.engine.claim(self.claim("r", ttl=LONG), 5.0)
        permit = self.claim("s", "semaphore-1", ttl=LONG)
        await self.grant(self.client, permit)
        await self.client.engine.claim(self.claim("s", "semaphore-1", ttl=LONG), 5.0)
        assert self.waiting("r") == self.waiting("s") == 1
        self.harness.restart(keep_data=True)
        assert self.waiting("r") == self.waiting("s") == 0
        client = self.connect()  # the other one may find only by asking that its connection is gone
        lease = await self.take(client.rwlock("r").read())
        assert await lease.release() is True
        assert await client.engine.release(permit, 5.0) is True
        lease = await self.take(client.semaphore("s", 1))
        assert await lease.release() is True
        await client.engine.release(readers, 5.0)
        await self.until_free("r")
        await self.until_free("s")

    async def test_no_answer_while_it_is_down(self) -> None:
        """Without a server claims are EngineUnavailable, and a lease is held until its time is
        over; afterwards all goes on."""
        lease = await self.take(self.client.lock("x", ttl=1))
        self.server.kill()
        try:
            client = self.connect(connect_timeout=0.5)
            await self.raises(holdfast.EngineUnavailable, client.lock("y").try_acquire)
            assert lease.held
            await self.until_lost(lease)
            assert lease.lost_reason is Reason.UNREACHABLE
        finally:
            self.server.start()
        assert await self.cycle(self.client) > lease.token

    async def test_restart_without_data(self) -> None:
        """The tables are made again, the holder learns of its loss at its next renewal; whoever
        comes next has a higher token."""
        lease = await self.take(self.client.lock("x", ttl=3))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=3))
        self.harness.restart(keep_data=False)
        await self.until_lost(lease)
        assert not lease.held
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True
        assert Fault.SERVER_DATA_LOSS not in self.client.guarantees.exclusive

    async def test_roll_back(self) -> None:
        """A server that goes on with an older copy of its data gives higher tokens all the same;
        the copy knows nothing of the lease that was granted since, and that is no promise."""
        await self.cycle(self.client)
        self.harness.keep_copy()
        lease = await self.take(self.client.lock("x", ttl=3))
        self.harness.roll_back()
        second = await self.take(self.connect().lock("x", ttl=3))
        assert second.token > lease.token
        await self.until_lost(lease)
        assert await second.release() is True


class TestFailover(AsyncPostgresSuite):
    """A primary with a standby that follows it."""

    harness = PostgresHarness()

    @classmethod
    def setup_class(cls) -> None:
        """Start both."""
        cls.harness.equip("fail_over")
        super().setup_class()

    async def test_standby_that_lagged(self) -> None:
        """A promoted standby that missed the last grants gives the lock to another, with a larger
        token; the old holder learns of it. Exclusion is not promised here, tokens are."""
        assert Fault.FAILOVER not in self.client.guarantees.exclusive
        before = await self.cycle(self.client)
        await self.until_so(lambda: self._replayed())
        self.harness.part_replica()
        lease = await self.take(self.client.lock("x", ttl=3))
        assert lease.token > before
        self.harness.fail_over()
        second = await self.take(self.connect().lock("x", ttl=LONG))
        assert second.token > lease.token
        await self.until_lost(lease)
        assert second.held
        assert await second.release() is True

    async def test_client_that_knows_both(self) -> None:
        """A URL with several hosts leads to the primary, whichever it is; a lease that the standby
        has heard of goes on there under the same token."""
        old, new = self.harness._servers
        url = f"postgresql://postgres@127.0.0.1:{new.port},127.0.0.1:{old.port}/postgres"
        client = self.reach(url)
        heard = self.listen(client)
        lease = await self.take(client.lock("y", ttl=15))
        await self.until_so(lambda: self._replayed())
        self.harness.fail_over()
        heard.events.clear()
        await heard.until(holdfast.events.Renewed)
        assert lease.held
        assert lease.token == self.floor("y")
        waiter = AsyncSpawned(self.take, self.connect().lock("y"))
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True

    def _replayed(self) -> bool:
        """Say whether the standby has heard of everything."""
        ((behind,),) = self.sql(
            "SELECT coalesce(max(pg_current_wal_lsn() - replay_lsn), 1) FROM pg_stat_replication"
        )
        return bool(behind <= 0)
