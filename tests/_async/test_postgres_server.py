"""What may be done to a PostgreSQL server while locks are held on it, and what becomes of them."""

from __future__ import annotations

import time

import psycopg
import pytest

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.model import Grant, Reason
from holdfast.testing.postgres_harness import PostgresHarness
from holdfast.testing.running import AsyncSpawned, elapsed
from tests._async.postgres_suite import AsyncPostgresSuite

LONG = 60.0  # a TTL that nobody waits for
QUICK = 20.0  # what is told, not timed, takes less


class TestServer(AsyncPostgresSuite):
    """A server whose connections, tables or rows are taken away."""

    harness = PostgresHarness()

    @pytest.mark.parametrize("listening", [False, True])
    async def test_terminated_connections(self, listening: bool) -> None:
        """Holder and waiters survive pg_terminate_backend: the lock is handed over, nobody waits
        for a TTL, and tokens rise."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        others = [self.connect() for _ in range(3)]
        waiters = [await self.queue(other, other.lock("x", ttl=LONG)) for other in others]
        started = time.monotonic()
        assert self.terminate(listening) >= 4
        assert lease.held
        tokens = [lease.token]
        assert await lease.release() is not False  # None: its own connection ended under it
        while waiters:
            await self.until_so(lambda: any(waiter.done for waiter in waiters))
            (first,) = [waiter for waiter in waiters if waiter.done]
            waiters.remove(first)
            tokens.append((await first.result()).token)
            assert await (await first.result()).release() is not False
        assert elapsed(started) < QUICK
        assert tokens == sorted(set(tokens))
        await self.until_free("x")

    async def test_force_is_heard_again_after_a_renewal(self) -> None:
        """A holder whose ear was cut off listens again from its next renewal on, and is named in
        the row by its new number from the one after that."""
        heard = self.listen(self.client)
        lease = await self.take(self.client.lock("x", ttl=3))
        assert self.terminate(listening=True) == 1
        await heard.until(holdfast.events.Renewed, 2)
        assert len(self.links(listening=True)) == 1
        started = time.monotonic()
        assert await self.connect().force_release("x") == 1
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.FORCED
        assert elapsed(started) < QUICK

    async def test_tables_that_are_dropped(self) -> None:
        """All data gone: the holder is told, those who waited get in, tokens go on rising, and the
        tables are made again."""
        lease = await self.take(self.client.lock("x", ttl=2))
        others = [self.connect() for _ in range(2)]
        waiters = [await self.queue(other, other.lock("x", ttl=2)) for other in others]
        self.sql("DROP SCHEMA holdfast CASCADE")
        await self.until_lost(lease)
        tokens = [lease.token]
        while waiters:
            await self.until_so(lambda: any(waiter.done for waiter in waiters))
            (first,) = [waiter for waiter in waiters if waiter.done]
            waiters.remove(first)
            tokens.append((await first.result()).token)
            await (await first.result()).release()
        assert tokens == sorted(set(tokens))
        await self.until_free("x")

    async def test_paused_server(self) -> None:
        """While it stands still nothing is granted; a lease ends on time, and afterwards all goes
        on with larger tokens."""
        lease = await self.take(self.client.lock("x", ttl=1))
        client = self.connect(connect_timeout=0.5)
        await client.ping()
        self.harness.pause()
        try:
            await self.raises(holdfast.EngineUnavailable, client.lock("y").try_acquire)
            await self.until_lost(lease)
            assert lease.lost_reason is Reason.UNREACHABLE
        finally:
            self.harness.resume()
        second = await self.take(self.connect().lock("x"))
        assert second.token > lease.token
        assert await second.release() is True
        await self.until_free("y")

    # --- Rows that somebody else keeps. ---

    async def test_idle_in_transaction(self) -> None:
        """A session that keeps a lock's row in a transaction blocks that lock only; after a while
        the error says so, and once it ends the lock is to be had."""
        await self.cycle(self.client)
        with psycopg.connect(self.server.url) as stranger:
            stranger.execute(
                "SELECT FROM holdfast.record WHERE key = %s FOR UPDATE", [self.key("x")]
            )
            await self.cycle(self.client, "y")
            error = await self.raises(holdfast.EngineUnavailable, self.client.lock("x").try_acquire)
            assert "idle in transaction" in str(error)
            await self.cycle(self.client, "y")
            waiter = AsyncSpawned(self.take, self.client.lock("x"))
            await asleep(0.2)
            assert not waiter.done
            stranger.rollback()
        assert await (await waiter.result()).release() is True
        await self.until_free("x")

    async def test_blocked_claims_cost_nobody_a_lease(self) -> None:
        """While all connections wait for a locked row, leases are renewed on their own."""
        client = self.connect(connections=2)
        await self.cycle(client)
        heard = self.listen(client)
        lease = await self.take(client.lock("kept", ttl=1.5))
        with psycopg.connect(self.server.url) as stranger:
            stranger.execute(
                "SELECT FROM holdfast.record WHERE key = %s FOR UPDATE", [self.key("x")]
            )
            stuck = [AsyncSpawned(self.cycle, client) for _ in range(4)]
            await heard.until(holdfast.events.Renewed, 4)
            assert lease.held
            stranger.rollback()
        for one in stuck:
            await one.result()
        assert await lease.release() is True

    async def test_default_isolation_is_not_ours(self) -> None:
        """A database whose default is serializable changes nothing: a session of ours says what it
        needs."""
        default = "ALTER DATABASE postgres SET default_transaction_isolation"
        self.sql(f"{default} = 'serializable'")
        try:
            clients = [self.connect() for _ in range(3)]

            async def work(client: holdfast.Client) -> None:
                for _ in range(20):
                    assert await (await self.take(client.lock("x"))).release() is True

            for one in [AsyncSpawned(work, client) for client in clients]:
                await one.result()
        finally:
            self.sql(f"{default} = 'read committed'")

    # --- Tables. ---

    async def test_tables_that_nobody_may_make(self) -> None:
        """With create=False missing tables are an error that says what to do; made by another
        client, they are used."""
        self.sql("DROP SCHEMA IF EXISTS other CASCADE")
        strict = self.connect(schema="other", create=False)
        error = await self.raises(holdfast.EngineUnavailable, strict.lock("x").try_acquire)
        assert "holdfast doctor --fix" in str(error)
        await self.cycle(self.connect(schema="other"))
        await self.cycle(strict)

    async def test_tables_of_another_version(self) -> None:
        """They are left alone, and the error names both versions (S5)."""
        self.sql("DROP SCHEMA IF EXISTS newer CASCADE")
        client = self.connect(schema="newer")
        await self.cycle(client)
        self.sql("COMMENT ON TABLE newer.record IS 'holdfast 2'")
        other = self.connect(schema="newer")
        error = await self.raises(holdfast.NotSupported, other.lock("x").try_acquire)
        assert "'holdfast 2'" in str(error)
        assert "'holdfast 1'" in str(error)

    async def test_schema_with_any_name(self) -> None:
        """A name that needs quoting is quoted."""
        name = 'Some "locks"; here'
        await self.hand_over(self.connect(schema=name))
        rows = self.sql("SELECT 1 FROM pg_tables WHERE schemaname = %s", name)
        assert len(rows) == 5

    async def test_many_make_the_tables_at_once(self) -> None:
        """Clients that come first at the same time do not get in each other's way."""
        self.sql("DROP SCHEMA IF EXISTS crowded CASCADE")
        clients = [self.connect(schema="crowded") for _ in range(6)]
        for one in [AsyncSpawned(self.cycle, client) for client in clients]:
            await one.result()

    async def test_no_such_database(self) -> None:
        """What the server says about the way in is in the error; the password is not."""
        url = f"postgresql://postgres:geheim@127.0.0.1:{self.server.port}/nowhere"
        client = self.reach(url, connect_timeout=3)
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert 'database "nowhere" does not exist' in str(error)
        assert "geheim" not in f"{error!r} {client!r} {client.engine.location}"


class TestClock(AsyncPostgresSuite):
    """A server whose clock is set."""

    harness = PostgresHarness()

    @classmethod
    def setup_class(cls) -> None:
        """Give the server a clock of its own."""
        cls.harness.equip("step_clock")
        super().setup_class()

    async def test_clock_that_is_set(self) -> None:
        """Set ahead, locks end early, and that is an event; set back, they last no longer than
        their TTL; tokens rise all the same."""
        heard = self.listen(self.client)
        first = await self.take(self.client.lock("x", ttl=LONG))
        self.harness.step_clock(3600)
        second = await self.take(self.connect().lock("x", ttl=2))
        assert second.token > first.token
        await self.raises(holdfast.LeaseLost, first.extend)
        (event,) = await heard.until(holdfast.events.ClockStep)
        assert 3500 < event.step < 3700
        await self.client.engine.release(self.claim_behind(second), 5.0)
        third = self.claim("x", ttl=2)
        grant = await self.client.engine.claim(third, 5.0)
        assert isinstance(grant, Grant)
        self.harness.step_clock(0)
        started = time.monotonic()
        fourth = await self.take(self.connect().lock("x", ttl=2))
        assert elapsed(started) < QUICK, "not an hour"
        assert fourth.token > grant.token
        assert await fourth.release() is True
