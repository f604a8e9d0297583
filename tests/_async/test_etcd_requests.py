"""What goes over the wire to etcd: as little as can be, and no more for a longer queue."""

from __future__ import annotations

import threading

import holdfast.aio as holdfast
from holdfast._concurrency import AsyncEvent
from holdfast.model import Grant, Queued
from holdfast.testing.etcd_harness import EtcdHarness
from holdfast.testing.running import AsyncRunner, AsyncSpawned
from tests._async.etcd_suite import AsyncEtcdSuite

PAIRS = 20
WAITERS = 100
CROWD = 1_000
TTL = 300.0  # nothing is confirmed while it is counted
EVENTS = "etcd_debugging_mvcc_events_total"


class TestRequests(AsyncEtcdSuite):
    """One server, and its own count of what it is asked."""

    harness = EtcdHarness()

    async def test_a_pair_is_two_transactions(self) -> None:
        """Once a session is open, acquire and release are one transaction each, on one lease."""
        client = self.connect(ttl=TTL)
        await self.cycle(client)
        before, leases = self.calls(), self.server.leases()
        for _ in range(PAIRS):
            await self.cycle(client)
        assert self.calls() - before == 2 * PAIRS
        assert self.server.leases() == leases

    async def test_keys_are_used_again(self) -> None:
        """etcd looks at every key that ever was below a record, until somebody compacts it: so a
        client uses no more of them than it has claims there at once."""
        client = self.connect(ttl=TTL)
        locks = {
            "x": [client.lock("x")] * PAIRS,
            "r": [client.rwlock("r").read()] * PAIRS,
            "s": [client.semaphore("s", 2)] * PAIRS,
            "t": [client.tree(f"t/{number}/a").write() for number in range(PAIRS)],
        }
        for name, some in locks.items():
            used = set[str]()
            for lock in some:
                lease = await self.take(lock)
                used.update(self.keys(name))
                assert await lease.release() is True
            assert len(used) == 1, name

    async def test_seats_of_waiters_are_used_again(self) -> None:
        """One holds and one waits, again and again: that takes two keys."""
        client = self.connect(ttl=TTL)
        used = set[str]()
        for _ in range(PAIRS):
            first = await self.take(client.lock("x"))
            waiter = await self.queue(client, client.lock("x"))
            used.update(self.keys("x"))
            assert await first.release() is True
            assert await (await waiter.result()).release() is True
        assert len(used) == 2

    async def test_readers_and_permits_too(self) -> None:
        """A reader beside readers, and a permit of which some are left, cost one transaction."""
        client = self.connect(ttl=TTL)
        reading, permits = client.rwlock("r").read(), client.semaphore("s", 5)
        leases = [await self.take(reading), await self.take(permits)]
        before = self.calls()
        leases += [await self.take(reading), await self.take(permits)]
        assert self.calls() - before == 2
        for lease in leases:
            assert await lease.release() is True
        assert self.calls() - before == 2 + 4

    async def test_the_first_claim_opens_a_session(self) -> None:
        """That is a lease and a key more, once per TTL; a refusal costs one transaction."""
        before = self.calls()
        client = self.connect(ttl=TTL)
        first = await self.take(client.lock("x"))
        assert self.calls() - before == 3
        assert await client.lock("x").try_acquire() is None
        assert self.calls() - before == 4
        second = await self.take(client.lock("y", ttl=TTL - 0.5))  # rounded up to the same lease
        assert self.calls() - before == 5
        assert len(self.sessions()) == 1
        assert await first.release() is True
        assert await second.release() is True

    async def test_a_hand_over_is_a_release_and_a_look(self) -> None:
        """Who waits is called by its watch, and looks once: at its own key too."""
        client = self.connect(ttl=TTL)
        first = await self.take(client.lock("x"))
        waiter = await self.queue(client, client.lock("x"))
        before = self.calls()
        assert await first.release() is True
        second = await waiter.result()
        assert self.calls() - before == 2
        assert await second.release() is True

    async def test_100_waiters(self) -> None:
        """They get in as they came; a hand-over is the release, one event and at most one look,
        however many wait."""
        clients = [self.connect(ttl=TTL) for _ in range(4)]
        lease = await self.take(self.connect(ttl=TTL).lock("x"))
        claims = [self.claim("x", ttl=TTL) for _ in range(WAITERS)]
        for number, claim in enumerate(claims):
            engine = clients[number % 4].engine
            await clients[number % 4].ping()
            assert isinstance(await engine.claim(claim, 5.0), Queued)
        assert self.owners("x")[1:] == [claim.owner for claim in claims]
        calls, looks, events = self.calls(), self.calls("Range"), self.metric(EVENTS)
        token = lease.token
        assert await lease.release() is True
        for number, claim in enumerate(claims):
            engine = clients[number % 4].engine
            answer: Grant | Queued | None = await engine.wait(claim, Queued(0, TTL), 10.0)
            if answer is None:
                answer = await engine.claim(claim, 5.0)
            assert isinstance(answer, Grant), f"waiter {number} did not get in"
            assert answer.token > token
            token = answer.token
            assert await engine.release(claim, 5.0) is True
        assert self.calls() - calls <= 1 + 2 * WAITERS  # release, look
        assert self.calls("Range") - looks <= 1  # this test's own
        assert self.metric(EVENTS) - events == WAITERS  # that etcd has sent to watchers
        assert self.keys("x") == []

    async def test_waiting_asks_nothing(self) -> None:
        """While nobody leaves, waiters cost nothing, readers and permits included."""
        client = self.connect(ttl=TTL)
        held = [await self.take(client.lock("x")), await self.take(client.semaphore("s", 1))]
        waiters = [
            await self.queue(client, lock)
            for lock in (client.lock("x"), client.rwlock("x").read(), client.semaphore("s", 1))
        ]
        before = self.calls()
        assert not await held[0].lost.wait(0.5)
        assert self.calls() == before
        for lease in held:
            assert await lease.release() is True
        for waiter in waiters:
            assert await (await waiter.result()).release() is True

    async def test_renewing_many_is_one_keep_alive_and_one_read(self) -> None:
        """What is due together is renewed together, whatever the number of locks (S12)."""
        client = self.connect(ttl=6)
        await self.cycle(client)
        leases = [await self.take(client.lock(f"x{number}")) for number in range(100)]
        heard = self.listen(client)
        before = self.calls("LeaseKeepAlive"), self.calls("Txn")
        await heard.until(holdfast.events.Renewed, len(leases))
        # One of each for every step of the grid on which they were taken, and those of the session.
        assert self.calls("LeaseKeepAlive") - before[0] <= 25
        assert self.calls("Txn") - before[1] <= 25
        for lease in leases:
            assert await lease.release() is True

    async def test_1000_waiters_without_a_thread_each(self) -> None:
        """A thousand claims of one client wait on one stream, which one reads."""
        client = self.connect(ttl=TTL)
        lease = await self.take(client.lock("x"))
        waiter = await self.queue(client, client.lock("x"), 120.0)  # whoever reads has begun
        before = threading.active_count()
        claims = [self.claim("x", ttl=TTL) for _ in range(CROWD)]
        for claim in claims:
            assert isinstance(await client.engine.claim(claim, 5.0), Queued)
        assert threading.active_count() <= before
        assert len(AsyncRunner.background()) < 10
        assert await lease.release() is True
        assert await (await waiter.result()).release() is True
        for claim in claims[:10]:
            answer: Grant | Queued | None = await client.engine.wait(claim, Queued(0, TTL), 10.0)
            if answer is None:
                answer = await client.engine.claim(claim, 5.0)
            assert isinstance(answer, Grant)
            assert await client.engine.release(claim, 5.0) is True
        assert threading.active_count() <= before
        self.server.ask("lease/revoke", {"ID": self.lease_of(self.keys("x")[0])})
        assert self.keys("x") == []

    async def test_an_idle_client_says_nothing(self) -> None:
        """Sessions that nobody uses end; nothing is asked any more, nothing is left."""
        client = self.connect(ttl=1)
        await self.cycle(client)
        (session,) = client.engine._sessions._all  # type: ignore[attr-defined]
        session.used -= 3600
        await self.until_so(lambda: not self.sessions())
        before = self.calls()
        assert not await AsyncEvent().wait(0.5)
        assert self.calls() == before
        await self.cycle(client)

    async def test_close_leaves_nothing(self) -> None:
        """Closing gives everything back: keys, sessions, leases, tasks and threads."""
        client = self.connect(ttl=TTL)
        lease = await self.take(client.lock("x"))
        await self.hand_over(client, "y")
        await client.close()
        assert not lease.held
        assert self.server.keys(f"{self.namespace}/") == []
        assert not any("etcd" in str(one) for one in AsyncRunner.background())

    async def test_a_crowd_of_one_client(self) -> None:
        """Those who come all at once, at the first use of a client, open one session, and all
        have their turn, in order of their tokens."""
        client = self.connect(ttl=TTL)
        tokens: list[int] = []

        async def once() -> None:
            lease = await self.take(client.lock("x"))
            tokens.append(lease.token)
            assert await lease.release() is True

        for one in [AsyncSpawned(once) for _ in range(30)]:
            await one.result()
        assert tokens == sorted(set(tokens))
        assert len(self.sessions()) == 1
        assert self.keys("x") == []
