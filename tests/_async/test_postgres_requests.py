"""What goes over the wire to PostgreSQL: as little as can be, never twice, never on a doubtful
link."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.model import Grant, Queued
from holdfast.testing.postgres_harness import PostgresHarness
from holdfast.testing.running import AsyncSpawned, elapsed
from tests._async.postgres_suite import OURS, AsyncPostgresSuite

PAIRS = 20
CROWD = 30
WAITERS = 200


class TestRequests(AsyncPostgresSuite):
    """One server, and a proxy that counts."""

    harness = PostgresHarness(log_statement="all")

    def heard(self, owner: str) -> int:
        """Return how often the server has run a statement that names this owner."""
        return self.server.log().count(f"'{owner}'")

    def compiles(self, pid: int) -> bool:
        """Say whether one of the server's processes has compiled anything."""
        return "llvmjit" in Path(f"/proc/{pid}/maps").read_text()

    async def test_a_pair_is_two_statements(self) -> None:
        """Once connections are made and statements prepared, acquire and release are one request
        each, on one connection; another one only listens."""
        await self.warm_up(self.client)
        before, links = self.requests(), self.links()
        for _ in range(PAIRS):
            await self.cycle(self.client, "warm")
        assert self.requests() - before == 2 * PAIRS
        assert self.links() == links
        assert len(links) == 2, "one for renewals"
        assert len(self.links(listening=True)) == 1

    async def test_the_first_renewal_does_not_connect(self) -> None:
        """It takes a connection that is idle: a lease must not hang on how fast one is made."""
        lease = await self.take(self.client.lock("x", ttl=60))
        made = self.proxy.connections
        await lease.extend()
        assert self.proxy.connections == made
        assert await lease.release() is True

    async def test_nothing_is_compiled(self) -> None:
        """The server's compiler takes longer than a hundred claims, and knows nothing the next
        time: no process of ours has loaded it, however new the name."""
        for number in range(3):
            await self.cycle(self.client, f"new{number}")
        links = self.links()
        assert links
        assert not [pid for pid in links if self.compiles(pid)]

    async def test_every_verb_is_one_statement(self) -> None:
        """Renewing many, looking, breaking: one request each, whatever the number of locks."""
        await self.warm_up(self.client)
        engine, patience = self.client.engine, self.harness.patience
        claims = [self.claim(f"x{number}", ttl=60) for number in range(30)]
        for claim in claims:
            await self.grant(self.client, claim)
        before = self.requests()
        await engine.renew(claims, patience)
        await engine.inspect(claims[0].key, patience)
        await engine.list(self.key("x"), patience)
        await engine.force(claims[0].key, None, patience)
        await engine.release(claims[1], patience)
        assert self.requests() - before == 5
        for claim in claims:
            await engine.release(claim, patience)

    async def test_a_hand_over_is_two_requests_each(self) -> None:
        """Whoever waits asks once and releases once: the grant comes by itself."""
        await self.warm_up(self.client)
        lease = await self.take(self.client.lock("warm", ttl=60))
        before = self.requests()
        waiter = await self.queue(self.client, self.client.lock("warm", ttl=60))
        assert await lease.release() is True
        assert await (await waiter.result()).release() is True
        assert self.requests() - before == 3

    async def test_one_request_renews_all(self) -> None:
        """Leases that are due together are renewed by one statement."""
        await self.warm_up(self.client)
        leases = [await self.take(self.client.lock(f"x{n}", ttl=4)) for n in range(50)]
        heard = self.listen(self.client)
        before = self.requests()
        await heard.until(holdfast.events.Renewed, len(leases))
        assert self.requests() - before <= 25  # one for each step of the grid they were taken in
        for lease in leases:
            assert await lease.release() is True

    async def test_a_try_that_fails_writes_nothing(self) -> None:
        """Who does not want to wait for a lock that is taken leaves no trace in the log (WAL)."""
        lease = await self.take(self.client.lock("x", ttl=60))
        other = self.connect()
        assert await other.lock("x").try_acquire() is None
        self.sql("CHECKPOINT")
        ((before,),) = self.sql("SELECT pg_current_wal_insert_lsn()")
        for _ in range(20):
            assert await other.lock("x").try_acquire() is None
        ((written,),) = self.sql("SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", before)
        assert written < 2000, "bytes: the server itself now and then writes some"
        assert await lease.release() is True

    async def test_what_timed_out_is_not_sent_again(self) -> None:
        """A request without an answer is sent once; its connection is never used again."""
        client = self.connect(connect_timeout=3)
        await self.warm_up(client)
        links = self.links()
        claim = self.claim("x")
        self.proxy.drop_replies()
        started = time.monotonic()
        await self.raises(holdfast.OutcomeUnknown, client.engine.claim, claim, 0.3)
        assert 0.29 < elapsed(started) < 5
        await self.until_so(lambda: self.heard(claim.owner))
        self.proxy.heal()
        assert self.heard(claim.owner) == 1
        answer = await client.engine.claim(claim._replace(ttl=60), 10.0)
        assert self.heard(claim.owner) == 2
        assert isinstance(answer, Grant)
        assert answer.token == self.floor("x")
        await self.until_so(lambda: not links & self.links())
        assert await client.engine.release(claim, 10.0) is True

    @pytest.mark.parametrize("verb", ["claim", "release"])
    async def test_what_was_cut_off_is_not_sent_again(self, verb: str) -> None:
        """A connection that ends in the middle of a request is an unknown outcome, at once."""
        client = self.connect()
        await self.warm_up(client)
        claim = self.claim("x", ttl=60)
        if verb == "release":
            assert isinstance(await client.engine.claim(claim, 5.0), Grant)
        lost = self.proxy.drop_next_reply(f"holdfast.{verb}".encode())
        started = time.monotonic()
        call = client.engine.claim if verb == "claim" else client.engine.release
        await self.raises(holdfast.OutcomeUnknown, call, claim, 30.0)
        assert elapsed(started) < 10
        assert lost.is_set()
        assert self.heard(claim.owner) == (2 if verb == "release" else 1)
        await client.engine.release(claim, 5.0)
        await self.until_free("x")

    async def test_few_connections_for_many(self) -> None:
        """However many claim at once, a client has a few connections, and they keep their
        places: each asks once, is told, and releases."""
        await self.cycle(self.client)
        client = self.connect(ttl=60, connections=3)
        threads = threading.active_count()
        tokens: list[int] = []

        async def once() -> None:
            lease = await self.take(client.lock("x"), timeout=60)
            tokens.append(lease.token)
            assert await lease.release() is True

        crowd = [AsyncSpawned(once) for _ in range(CROWD)]
        most = 0
        while not all(one.done for one in crowd):
            await asleep(0.02)
            ours = len(self.sql(f"SELECT 1 FROM pg_stat_activity WHERE {OURS}"))
            most = max(most, ours)
            others = threading.active_count() - threads
            assert others <= CROWD + 3, "theirs, and those of one client: none per waiter"
        for one in crowd:
            await one.result()
        assert tokens == sorted(set(tokens))
        assert len(tokens) == CROWD
        assert most <= 2 + 3 + 2
        await self.until_free("x")

    async def test_200_waiters_in_order(self) -> None:
        """200 waiters get in as they came, each by a push, and each hand-over is one statement:
        not one more for the length of the queue, nor while they wait."""
        clients = [self.connect(ttl=120) for _ in range(4)]
        lease = await self.take(self.client.lock("x", ttl=120))
        owners: list[str] = []
        for number in range(WAITERS):
            claim = self.claim("x", ttl=120)
            engine = clients[number % 4].engine
            assert isinstance(await engine.claim(claim, 10.0), Queued)
            owners.append(claim.owner)
        shot = await self.client.inspect("x")
        assert [entry.owner for entry in shot.waiters] == owners
        for client in clients:  # all statements are prepared
            await client.engine.release(self.claim("y"), 10.0)
            await client.engine.release(self.claim("y"), 10.0)
        before = self.requests()
        token = lease.token
        assert await lease.release() is True
        for number, owner in enumerate(owners):
            engine = clients[number % 4].engine
            claim = self.claim("x", ttl=120, owner=owner)
            grant = await engine.wait(claim, Queued(0, 60.0), self.harness.patience)
            assert grant is not None, f"waiter {number} was not told"
            assert grant.token > token
            token = grant.token
            assert await engine.release(claim, 10.0) is True
        extra = self.requests() - before - (1 + WAITERS)
        assert 0 <= extra <= 2 * (1 + len(clients)), "some may have to prepare a statement"
        await self.until_free("x")
