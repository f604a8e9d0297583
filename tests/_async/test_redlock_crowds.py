"""Many contenders for one name on Redlock: one gets in at a time, all get in, tokens rise."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.model import Grant
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.running import AsyncSpawned, elapsed
from holdfast.testing.servers import Proxy
from tests._async.redlock_suite import ALL, AsyncRedlockSuite, urls_of

CONTENDERS = 16
SHARE = 14
DUELS = 15
PERMITS = 2


class TestCrowds(AsyncRedlockSuite):
    """Threads or tasks of three clients."""

    harness = RedlockHarness()

    async def test_sixteen_contenders(self) -> None:
        """No increment of an unprotected number is lost, no two leases are held at once, tokens
        rise from grant to grant, and nobody starves."""
        clients = [self.patient() for _ in range(3)]
        inside: list[holdfast.Lease] = []
        tokens: list[int] = []
        shares: Counter[int] = Counter()
        number = 0

        async def contend(who: int) -> None:
            nonlocal number
            lock = clients[who % 3].lock("x")
            while number < CONTENDERS * SHARE:
                lease = await self.take(lock)
                inside.append(lease)
                seen = number
                await asleep(0)
                assert [one for one in inside if one.held] == [lease]
                tokens.append(lease.token)
                number = seen + 1
                inside.remove(lease)
                assert await lease.release() is not False
                shares[who] += 1

        crowd = [AsyncSpawned(contend, who) for who in range(CONTENDERS)]
        for one in crowd:
            await one.result(60)
        assert number == len(tokens) >= CONTENDERS * SHARE
        assert tokens == sorted(set(tokens))
        assert min(shares[who] for who in range(CONTENDERS)) >= SHARE / 4, shares
        await self.until_free("x")

    async def test_duels(self) -> None:
        """Two that ask at the very same time may split the votes; one of them wins soon, and the
        other comes next."""
        clients = [self.patient(), self.patient()]
        for client in clients:
            await self.cycle(client)

        async def fight(client: holdfast.Client, name: str) -> None:
            lease = await self.take(client.lock(name))
            assert await lease.release() is True

        for duel in range(DUELS):
            started = time.monotonic()
            both = [AsyncSpawned(fight, client, f"x{duel}") for client in clients]
            for one in both:
                await one.result()
            assert elapsed(started) < 10.0

    async def test_a_writer_among_readers(self) -> None:
        """Readers that come and go without end do not keep a writer out."""
        clients = [self.patient() for _ in range(2)]
        await self.cycle(clients[1])
        stop: list[bool] = []
        rounds = 0

        async def read(client: holdfast.Client) -> None:
            nonlocal rounds
            while not stop:
                lease = await self.take(client.rwlock("x").read())
                await asleep(0.02)
                rounds += 1
                assert await lease.release() is not False

        readers = [AsyncSpawned(read, clients[0]) for _ in range(4)]
        await self.until_so(lambda: rounds >= 8)
        started = time.monotonic()
        lease = await self.take(clients[1].rwlock("x").write())
        assert elapsed(started) < 15.0
        before = rounds
        await asleep(0.1)
        assert rounds <= before + 4  # those that had just let go
        assert await lease.release() is True
        await self.until_so(lambda: rounds >= before + 8)
        stop.append(True)
        for reader in readers:
            await reader.result()

    # --- Semaphores. ---

    async def test_permits(self) -> None:
        """Of a semaphore of two never three are held, and both are used."""
        clients = [self.patient() for _ in range(3)]
        held: list[holdfast.Lease] = []
        most: list[int] = []

        async def use(who: int) -> None:
            for _ in range(5):
                lease = await self.take(clients[who % 3].semaphore("x", PERMITS), 30)
                held.append(lease)
                await asleep(0.02)
                most.append(sum(one.held for one in held))
                held.remove(lease)
                assert await lease.release() is not False

        users = [AsyncSpawned(use, who) for who in range(9)]
        for user in users:
            await user.result(60)
        assert len(most) == 9 * 5
        assert max(most) == PERMITS
        await self.until_free("x")

    async def test_permits_of_majorities_that_overlap_little(self) -> None:
        """Three clients that reach {0,1,2}, {0,3,4} and {1,2,3} load no node with more than two;
        counters would let all three in, slots do not."""
        reach = ({0, 1, 2}, {0, 3, 4}, {1, 2, 3})
        with ExitStack() as stack:
            clients = []
            for nodes in reach:
                proxies = [stack.enter_context(Proxy(server.port)) for server in self.servers]
                urls = urls_of(proxy.port for proxy in proxies)
                client = self.reach(urls, ttl=30, node_timeout=0.3)
                await self.cycle(client, "warm")
                for number in ALL:
                    if number not in nodes:
                        proxies[number].cut()
                clients.append(client)
            granted = []
            for client in clients:
                claim = self.claim("x", f"semaphore-{PERMITS}", ttl=30, queue=False)
                answer = await client.engine.claim(claim, 5.0)
                granted.append(isinstance(answer, Grant))
            assert granted == [True, True, False]
            for client in clients:
                await client.close()

    # --- Waiters that are gone. ---

    async def test_a_waiter_that_asks_no_more(self) -> None:
        """One that is first everywhere, and is stopped or cut off, costs the others a few seconds;
        one whose connection is gone costs them nothing."""
        stopped, gone, alive = (self.patient() for _ in range(3))
        lease = await self.take(alive.lock("x"))
        for client in (stopped, gone):
            await client.ping()
            await client.engine.claim(self.claim("x", ttl=20), 5.0)
        await gone.engine.close()
        waiter = await self.queue(alive, alive.lock("x"))
        assert await lease.release() is True
        started = time.monotonic()
        second = await waiter.result()
        assert elapsed(started) < 15.0
        assert second.token > lease.token
        assert await second.release() is True
