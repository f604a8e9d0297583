"""(Generated from _async/test_postgres_restarts.py by tools/unasync.py: do not edit.) PostgreSQL servers that stop, start again or are replaced: what is kept, what is lost, who is
told."""

from __future__ import annotations

import holdfast
from holdfast.model import Fault, Mode, Reason
from holdfast.testing.postgres_harness import PostgresHarness
from holdfast.testing.running import Spawned
from tests._sync.postgres_suite import PostgresSuite

LONG = 60.0  # a TTL that nobody waits for


class TestRestarts(PostgresSuite):
    """A server that is killed, and comes back with what it has committed, or with nothing."""

    harness = PostgresHarness()

    def test_lease_goes_on(self) -> None:
        """The lease is renewed under the same token; who waited asks again and is handed the
        lock. That exclusion survives a restart is a promise."""
        assert Fault.SERVER_RESTART in self.client.guarantees.exclusive
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=9))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=9))
        self.harness.restart(keep_data=True)
        heard.events.clear()
        heard.until(holdfast.events.Renewed)
        assert lease.held
        assert lease.token == self.floor("x")
        assert not waiter.done
        self.until_so(lambda: self.waiting("x") == 1)  # the queue was not kept
        assert lease.release() is True
        second = waiter.result()
        assert second.token > lease.token
        assert second.release() is True
        self.until_free("x")

    def test_queue_that_a_crash_has_emptied(self) -> None:
        """Readers and permits are let in although the row still counts waiters that are gone."""
        readers = self.claim("r", ttl=LONG, mode=Mode.SHARED)
        self.grant(self.client, readers)
        self.client.engine.claim(self.claim("r", ttl=LONG), 5.0)
        permit = self.claim("s", "semaphore-1", ttl=LONG)
        self.grant(self.client, permit)
        self.client.engine.claim(self.claim("s", "semaphore-1", ttl=LONG), 5.0)
        assert self.waiting("r") == self.waiting("s") == 1
        self.harness.restart(keep_data=True)
        assert self.waiting("r") == self.waiting("s") == 0
        client = self.connect()  # the other one may find only by asking that its connection is gone
        lease = self.take(client.rwlock("r").read())
        assert lease.release() is True
        assert client.engine.release(permit, 5.0) is True
        lease = self.take(client.semaphore("s", 1))
        assert lease.release() is True
        client.engine.release(readers, 5.0)
        self.until_free("r")
        self.until_free("s")

    def test_no_answer_while_it_is_down(self) -> None:
        """Without a server claims are EngineUnavailable, and a lease is held until its time is
        over; afterwards all goes on."""
        lease = self.take(self.client.lock("x", ttl=1))
        self.server.kill()
        try:
            client = self.connect(connect_timeout=0.5)
            self.raises(holdfast.EngineUnavailable, client.lock("y").try_acquire)
            assert lease.held
            self.until_lost(lease)
            assert lease.lost_reason is Reason.UNREACHABLE
        finally:
            self.server.start()
        assert self.cycle(self.client) > lease.token

    def test_restart_without_data(self) -> None:
        """The tables are made again, the holder learns of its loss at its next renewal; whoever
        comes next has a higher token."""
        lease = self.take(self.client.lock("x", ttl=3))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=3))
        self.harness.restart(keep_data=False)
        self.until_lost(lease)
        assert not lease.held
        second = waiter.result()
        assert second.token > lease.token
        assert second.release() is True
        assert Fault.SERVER_DATA_LOSS not in self.client.guarantees.exclusive

    def test_roll_back(self) -> None:
        """A server that goes on with an older copy of its data gives higher tokens all the same;
        the copy knows nothing of the lease that was granted since, and that is no promise."""
        self.cycle(self.client)
        self.harness.keep_copy()
        lease = self.take(self.client.lock("x", ttl=3))
        self.harness.roll_back()
        second = self.take(self.connect().lock("x", ttl=3))
        assert second.token > lease.token
        self.until_lost(lease)
        assert second.release() is True


class TestFailover(PostgresSuite):
    """A primary with a standby that follows it."""

    harness = PostgresHarness()

    @classmethod
    def setup_class(cls) -> None:
        """Start both."""
        cls.harness.equip("fail_over")
        super().setup_class()

    def test_standby_that_lagged(self) -> None:
        """A promoted standby that missed the last grants gives the lock to another, with a larger
        token; the old holder learns of it. Exclusion is not promised here, tokens are."""
        assert Fault.FAILOVER not in self.client.guarantees.exclusive
        before = self.cycle(self.client)
        self.until_so(lambda: self._replayed())
        self.harness.part_replica()
        lease = self.take(self.client.lock("x", ttl=3))
        assert lease.token > before
        self.harness.fail_over()
        second = self.take(self.connect().lock("x", ttl=LONG))
        assert second.token > lease.token
        self.until_lost(lease)
        assert second.held
        assert second.release() is True

    def test_client_that_knows_both(self) -> None:
        """A URL with several hosts leads to the primary, whichever it is; a lease that the standby
        has heard of goes on there under the same token."""
        old, new = self.harness._servers
        url = f"postgresql://postgres@127.0.0.1:{new.port},127.0.0.1:{old.port}/postgres"
        client = self.reach(url)
        heard = self.listen(client)
        lease = self.take(client.lock("y", ttl=15))
        self.until_so(lambda: self._replayed())
        self.harness.fail_over()
        heard.events.clear()
        heard.until(holdfast.events.Renewed)
        assert lease.held
        assert lease.token == self.floor("y")
        waiter = Spawned(self.take, self.connect().lock("y"))
        assert lease.release() is True
        second = waiter.result()
        assert second.token > lease.token
        assert second.release() is True

    def _replayed(self) -> bool:
        """Say whether the standby has heard of everything."""
        ((behind,),) = self.sql(
            "SELECT coalesce(max(pg_current_wal_lsn() - replay_lsn), 1) FROM pg_stat_replication"
        )
        return bool(behind <= 0)
