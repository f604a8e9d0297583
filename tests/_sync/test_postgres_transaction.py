"""(Generated from _async/test_postgres_transaction.py by tools/unasync.py: do not edit.) transaction_lock: the lock for the length of one's own transaction, among leases and others."""

from __future__ import annotations

from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import dict_row

import holdfast
from holdfast._sync.transaction_lock import transaction_lock
from holdfast._concurrency import sleep
from holdfast.fencing import fence_of
from holdfast.model import Outcome, Queued
from holdfast.postgres_record import TransactionLock
from holdfast.testing.postgres_harness import PostgresHarness
from holdfast.testing.running import Spawned
from tests._sync.postgres_suite import PostgresSuite

LONG = 60.0  # a TTL that nobody waits for


class TestTransactionLock(PostgresSuite):
    """One server; transactions on connections of the caller's own."""

    harness = PostgresHarness()

    def open(self, **options: Any) -> Connection[Any]:
        """Return a connection as users have one, once the tables are there."""
        self.client.ping()
        return Connection.connect(self.server.url, **options)

    def lock_in(
        self, connection: Connection[Any], name: str = "x", **options: Any
    ) -> TransactionLock:
        """Take a lock of this test's namespace."""
        return transaction_lock(connection, name, namespace=self.namespace, **options)

    def test_lasts_until_commit(self) -> None:
        """While the transaction is open nobody has the lock, is let in or queues up; when it ends
        whoever waits is, and tokens rise all along."""
        before = self.cycle(self.client)
        with self.open() as connection:
            with connection.transaction():
                taken = self.lock_in(connection)
                assert taken.token > before
                assert self.client.lock("x").locked()
                (entry,) = (self.client.inspect("x")).holders
                assert entry.label == "a transaction"
                assert self.client.lock("x").try_acquire() is None
                assert self.client.lock("x").acquire(timeout=0.3) is None
                assert self.client.force_release("x") == 0
                assert self.waiting("x") == 0
                waiter = Spawned(self.take, self.client.lock("x"))
                sleep(0.1)
                assert not waiter.done
            lease = waiter.result()
        assert lease.token > taken.token
        assert lease.release() is True
        self.until_free("x")

    def test_ends_with_rollback_and_with_the_connection(self) -> None:
        """However the transaction ends, the lock is free, and the next token is larger."""
        tokens = []
        connection = self.open()
        tokens.append((self.lock_in(connection)).token)
        connection.rollback()
        tokens.append((self.lock_in(connection)).token)
        connection.close()
        tokens.append(self.cycle(self.client))
        assert tokens == sorted(set(tokens))

    def test_waits_for_leases(self) -> None:
        """It comes after who holds and who waited before it, and before who came later, who is
        not even queued; nobody polls for ever."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        before = self.queue(self.client, self.client.lock("x", ttl=LONG))
        with self.open() as connection:
            taking = Spawned(self.lock_in, connection)
            self.until_so(lambda: self._lanes() == 1)
            other = self.connect()
            later = Spawned(self.take, other.lock("x", ttl=LONG))
            sleep(0.1)
            assert self.waiting("x") == 1
            lease.extend()  # who holds may renew
            assert lease.release() is True  # and hand over
            second = before.result()
            sleep(0.1)
            assert not taking.done
            assert second.release() is True
            taken = taking.result()
            assert not later.done
            connection.commit()
            last = later.result()
        assert lease.token < second.token < taken.token < last.token
        assert last.release() is True

    def _lanes(self) -> int:
        rows = self.sql(
            "SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND query NOT LIKE '%%LISTEN%%'"
        )
        return len(rows)

    def test_dead_holder(self) -> None:
        """Who died while holding costs its TTL, whether leases wait behind it or not."""
        self.die_holding(self.claim("x", ttl=1))
        with self.open() as connection:
            assert (self.lock_in(connection)).token
            connection.commit()
            self.die_holding(self.claim("x", ttl=1))
            waiter = self.queue(self.client, self.client.lock("x"))
            taking = Spawned(self.lock_in, connection)
            lease = waiter.result()
            assert lease.release() is True
            assert (taking.result()).token > lease.token
            connection.rollback()

    def test_expired_holder_lets_go_meanwhile(self) -> None:
        """Renewing and releasing what is over does not wait for the transaction that has it."""
        claim = self.claim("x", ttl=0.5)
        self.grant(self.client, claim)
        with self.open() as connection:
            self.lock_in(connection)
            engine = self.client.engine
            assert (engine.renew([claim], 5.0))[0].outcome is Outcome.LOST
            assert engine.release(claim, 5.0) is False
            assert isinstance(engine.claim(claim, 5.0), Queued)
            connection.commit()
        self.cycle(self.client)

    def test_time_out_leaves_the_transaction_as_it_was(self) -> None:
        """NotAcquired is no reason to roll back: what was done before stays, and so does the right
        of others to the lock."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        with self.open() as connection:
            connection.execute("CREATE TEMP TABLE work AS SELECT 1 AS done")
            for timeout in (0, 0.2):
                error = self.raises(
                    holdfast.NotAcquired,
                    partial(
                        transaction_lock,
                        connection,
                        "x",
                        timeout=timeout,
                        namespace=self.namespace,
                    ),
                )
                assert error.name == "x"
            assert self._lanes() == 0
            assert lease.release() is True
            self.cycle(self.client)
            assert (connection.execute("SELECT done FROM work")).fetchone() == (1,)

    def test_transactions_exclude_each_other(self) -> None:
        """No increment of a counter is lost between transactions and leases."""
        self.sql("CREATE TABLE IF NOT EXISTS counter (n integer)")
        self.sql("TRUNCATE counter")
        self.sql("INSERT INTO counter VALUES (0)")

        def add(connection: Connection[Any]) -> None:
            row = (connection.execute("SELECT n FROM counter")).fetchone()
            assert row is not None
            connection.execute("UPDATE counter SET n = %s", [row[0] + 1])

        def by_transaction() -> None:
            with self.open() as connection:
                for _ in range(10):
                    with connection.transaction():
                        self.lock_in(connection)
                        add(connection)

        def by_lease() -> None:
            client = self.connect()
            with self.open(autocommit=True) as connection:
                for _ in range(10):
                    with client.lock("x", timeout=60):
                        add(connection)

        for one in [Spawned(work) for work in (by_transaction, by_lease) * 2]:
            one.result(60)
        assert self.sql("SELECT n FROM counter") == [(40,)]

    def test_what_it_is_good_for(self) -> None:
        """Guards take it as they take a lease; rows of whatever shape do not matter to it."""
        with self.open(row_factory=dict_row) as connection:
            taken = self.lock_in(connection)
            assert taken.domain == f"postgresql:{self.namespace}"
            assert fence_of(taken).token == taken.token
            connection.rollback()

    def test_what_cannot_keep_a_lock(self) -> None:
        """A connection without a transaction, or with a failed one, or no connection at all."""
        with self.open(autocommit=True) as connection:
            self.raises(ValueError, self.lock_in, connection)
            with connection.transaction():
                self.lock_in(connection)
        with self.open() as connection:
            with pytest.raises(psycopg.Error):
                connection.execute("SELECT 1 / 0")
            self.raises(ValueError, self.lock_in, connection)
            connection.rollback()
            missing = {"schema": "nothing_here"}
            error = self.raises(
                holdfast.EngineUnavailable, lambda: self.lock_in(connection, **missing)
            )
            assert "holdfast doctor --fix" in str(error)
            assert (connection.execute("SELECT 1")).fetchone() == (1,)
        self.raises(TypeError, lambda: self.lock_in(self.server))  # type: ignore[arg-type]
