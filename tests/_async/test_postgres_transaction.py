"""transaction_lock: the lock for the length of one's own transaction, among leases and others."""

from __future__ import annotations

from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.rows import dict_row

import holdfast.aio as holdfast
from holdfast._async.transaction_lock import transaction_lock
from holdfast._concurrency import asleep
from holdfast.fencing import fence_of
from holdfast.model import Outcome, Queued
from holdfast.postgres_record import TransactionLock
from holdfast.testing.postgres_harness import PostgresHarness
from holdfast.testing.running import AsyncSpawned
from tests._async.postgres_suite import AsyncPostgresSuite

LONG = 60.0  # a TTL that nobody waits for


class TestTransactionLock(AsyncPostgresSuite):
    """One server; transactions on connections of the caller's own."""

    harness = PostgresHarness()

    async def open(self, **options: Any) -> AsyncConnection[Any]:
        """Return a connection as users have one, once the tables are there."""
        await self.client.ping()
        return await AsyncConnection.connect(self.server.url, **options)

    async def lock_in(
        self, connection: AsyncConnection[Any], name: str = "x", **options: Any
    ) -> TransactionLock:
        """Take a lock of this test's namespace."""
        return await transaction_lock(connection, name, namespace=self.namespace, **options)

    async def test_lasts_until_commit(self) -> None:
        """While the transaction is open nobody has the lock, is let in or queues up; when it ends
        whoever waits is, and tokens rise all along."""
        before = await self.cycle(self.client)
        async with await self.open() as connection:
            async with connection.transaction():
                taken = await self.lock_in(connection)
                assert taken.token > before
                assert await self.client.lock("x").locked()
                (entry,) = (await self.client.inspect("x")).holders
                assert entry.label == "a transaction"
                assert await self.client.lock("x").try_acquire() is None
                assert await self.client.lock("x").acquire(timeout=0.3) is None
                assert await self.client.force_release("x") == 0
                assert self.waiting("x") == 0
                waiter = AsyncSpawned(self.take, self.client.lock("x"))
                await asleep(0.1)
                assert not waiter.done
            lease = await waiter.result()
        assert lease.token > taken.token
        assert await lease.release() is True
        await self.until_free("x")

    async def test_ends_with_rollback_and_with_the_connection(self) -> None:
        """However the transaction ends, the lock is free, and the next token is larger."""
        tokens = []
        connection = await self.open()
        tokens.append((await self.lock_in(connection)).token)
        await connection.rollback()
        tokens.append((await self.lock_in(connection)).token)
        await connection.close()
        tokens.append(await self.cycle(self.client))
        assert tokens == sorted(set(tokens))

    async def test_waits_for_leases(self) -> None:
        """It comes after who holds and who waited before it, and before who came later, who is
        not even queued; nobody polls for ever."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        before = await self.queue(self.client, self.client.lock("x", ttl=LONG))
        async with await self.open() as connection:
            taking = AsyncSpawned(self.lock_in, connection)
            await self.until_so(lambda: self._lanes() == 1)
            other = self.connect()
            later = AsyncSpawned(self.take, other.lock("x", ttl=LONG))
            await asleep(0.1)
            assert self.waiting("x") == 1
            await lease.extend()  # who holds may renew
            assert await lease.release() is True  # and hand over
            second = await before.result()
            await asleep(0.1)
            assert not taking.done
            assert await second.release() is True
            taken = await taking.result()
            assert not later.done
            await connection.commit()
            last = await later.result()
        assert lease.token < second.token < taken.token < last.token
        assert await last.release() is True

    def _lanes(self) -> int:
        rows = self.sql(
            "SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND query NOT LIKE '%%LISTEN%%'"
        )
        return len(rows)

    async def test_dead_holder(self) -> None:
        """Who died while holding costs its TTL, whether leases wait behind it or not."""
        await self.die_holding(self.claim("x", ttl=1))
        async with await self.open() as connection:
            assert (await self.lock_in(connection)).token
            await connection.commit()
            await self.die_holding(self.claim("x", ttl=1))
            waiter = await self.queue(self.client, self.client.lock("x"))
            taking = AsyncSpawned(self.lock_in, connection)
            lease = await waiter.result()
            assert await lease.release() is True
            assert (await taking.result()).token > lease.token
            await connection.rollback()

    async def test_expired_holder_lets_go_meanwhile(self) -> None:
        """Renewing and releasing what is over does not wait for the transaction that has it."""
        claim = self.claim("x", ttl=0.5)
        await self.grant(self.client, claim)
        async with await self.open() as connection:
            await self.lock_in(connection)
            engine = self.client.engine
            assert (await engine.renew([claim], 5.0))[0].outcome is Outcome.LOST
            assert await engine.release(claim, 5.0) is False
            assert isinstance(await engine.claim(claim, 5.0), Queued)
            await connection.commit()
        await self.cycle(self.client)

    async def test_time_out_leaves_the_transaction_as_it_was(self) -> None:
        """NotAcquired is no reason to roll back: what was done before stays, and so does the right
        of others to the lock."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        async with await self.open() as connection:
            await connection.execute("CREATE TEMP TABLE work AS SELECT 1 AS done")
            for timeout in (0, 0.2):
                error = await self.raises(
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
            assert await lease.release() is True
            await self.cycle(self.client)
            assert await (await connection.execute("SELECT done FROM work")).fetchone() == (1,)

    async def test_transactions_exclude_each_other(self) -> None:
        """No increment of a counter is lost between transactions and leases."""
        self.sql("CREATE TABLE IF NOT EXISTS counter (n integer)")
        self.sql("TRUNCATE counter")
        self.sql("INSERT INTO counter VALUES (0)")

        async def add(connection: AsyncConnection[Any]) -> None:
            row = await (await connection.execute("SELECT n FROM counter")).fetchone()
            assert row is not None
            await connection.execute("UPDATE counter SET n = %s", [row[0] + 1])

        async def by_transaction() -> None:
            async with await self.open() as connection:
                for _ in range(10):
                    async with connection.transaction():
                        await self.lock_in(connection)
                        await add(connection)

        async def by_lease() -> None:
            client = self.connect()
            async with await self.open(autocommit=True) as connection:
                for _ in range(10):
                    async with client.lock("x", timeout=60):
                        await add(connection)

        for one in [AsyncSpawned(work) for work in (by_transaction, by_lease) * 2]:
            await one.result(60)
        assert self.sql("SELECT n FROM counter") == [(40,)]

    async def test_what_it_is_good_for(self) -> None:
        """Guards take it as they take a lease; rows of whatever shape do not matter to it."""
        async with await self.open(row_factory=dict_row) as connection:
            taken = await self.lock_in(connection)
            assert taken.domain == f"postgresql:{self.namespace}"
            assert fence_of(taken).token == taken.token
            await connection.rollback()

    async def test_what_cannot_keep_a_lock(self) -> None:
        """A connection without a transaction, or with a failed one, or no connection at all."""
        async with await self.open(autocommit=True) as connection:
            await self.raises(ValueError, self.lock_in, connection)
            async with connection.transaction():
                await self.lock_in(connection)
        async with await self.open() as connection:
            with pytest.raises(psycopg.Error):
                await connection.execute("SELECT 1 / 0")
            await self.raises(ValueError, self.lock_in, connection)
            await connection.rollback()
            missing = {"schema": "nothing_here"}
            error = await self.raises(
                holdfast.EngineUnavailable, lambda: self.lock_in(connection, **missing)
            )
            assert "holdfast doctor --fix" in str(error)
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
        await self.raises(TypeError, lambda: self.lock_in(self.server))  # type: ignore[arg-type]
