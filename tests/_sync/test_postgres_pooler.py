"""(Generated from _async/test_postgres_pooler.py by tools/unasync.py: do not edit.) PgBouncer in transaction mode: what it takes away is noticed, said, and done without."""

from __future__ import annotations

import time

import psycopg

import holdfast
from holdfast.testing.postgres_harness import PgBouncerHarness
from holdfast.testing.running import Spawned, elapsed
from holdfast.testing.servers.pgbouncer import PgBouncer
from tests._sync.postgres_suite import PostgresSuite

LONG = 60.0  # a TTL that nobody waits for


class TestPooler(PostgresSuite):
    """One PgBouncer before one server."""

    harness = PgBouncerHarness()

    def test_it_is_found_out_and_said(self) -> None:
        """A client that was not told finds a pooler at its first connection: an event says so, and
        `guarantees` promise no push any more."""
        client = self.reach(self.harness.bouncer.url)
        heard = self.listen(client)
        assert client.guarantees.push
        self.cycle(client)
        (event,) = heard.until(holdfast.events.Deaf)
        assert "pooler" in event.why
        assert not client.guarantees.push
        assert not self.client.guarantees.push, "who is told at once knows at once"
        started = time.monotonic()
        self.hand_over(client)
        assert elapsed(started) < 10, "by looking, not by the end of a TTL"

    def test_many_find_it_out_at_once(self) -> None:
        """It refuses what the first connections ask for, each of them: no call fails for that."""
        client = self.reach(self.harness.bouncer.url)
        for one in [Spawned(client.ping) for _ in range(4)]:
            one.result()

    def test_nothing_is_left_in_sessions(self) -> None:
        """No prepared statements, no channels, no advisory locks: sessions are others' too."""
        client = self.reach(self.harness.bouncer.url)
        self.warm_up(client)
        self.hand_over(client)
        assert self.sql("SELECT * FROM pg_locks WHERE locktype = 'advisory'") == []
        assert self.links(listening=True) == set()
        for _ in range(4):
            with psycopg.connect(self.harness.bouncer.url, prepare_threshold=None) as other:
                assert other.execute("SELECT name FROM pg_prepared_statements").fetchall() == []
                assert other.execute("SELECT pg_listening_channels()").fetchall() == []

    def test_options_that_are_swallowed(self) -> None:
        """A pooler that ignores what a session asks for, instead of refusing, is found out too."""
        options = {"ignore_startup_parameters": "options,extra_float_digits"}
        with PgBouncer(self.server, options=options) as quiet:
            client = self.reach(quiet.url)
            heard = self.listen(client)
            self.hand_over(client)
            heard.until(holdfast.events.Deaf)
            client.close()

    def test_sessions_of_our_own(self) -> None:
        """Where the pooler keeps sessions apart, listen=yes brings pushes back."""
        with PgBouncer(self.server, options={"pool_mode": "session"}) as keeper:
            client = self.reach(f"{keeper.url}?listen=yes")
            assert client.guarantees.push
            lease = self.take(client.lock("x", ttl=LONG))
            waiter = self.queue(client, client.lock("x", ttl=LONG))
            assert len(self.sql("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'")) == 1
            assert lease.release() is True
            assert (waiter.result()).release() is True
            client.close()

    def test_waiter_that_asks_no_more(self) -> None:
        """A waiter that nobody can probe is passed over once it has been silent for long."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        silent = self.claim("x", ttl=LONG)
        self.client.engine.claim(silent, 5.0)
        waiter = self.queue(self.client, self.client.lock("x", ttl=LONG))
        self.sql("UPDATE holdfast.waiter SET until = 0 WHERE owner = %s", silent.owner)
        started = time.monotonic()
        assert lease.release() is True
        assert (waiter.result()).release() is True
        assert elapsed(started) < LONG / 2

    def test_pooler_restarts(self) -> None:
        """Leases go on when PgBouncer comes back."""
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=9))
        self.harness.bouncer.kill()
        self.harness.bouncer.start()
        heard.until(holdfast.events.Renewed)
        assert lease.held
        assert lease.release() is True
