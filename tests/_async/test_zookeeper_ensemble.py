"""Three ZooKeeper servers under leader kills, pauses and partitions: no two holders at a time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from kazoo.client import KazooClient  # type: ignore[import-untyped]

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.clocks import boot_clock
from holdfast.testing._async.conformance.base import AsyncBase
from holdfast.testing.running import AsyncSpawned
from holdfast.testing.servers import ZooKeeperEnsemble
from holdfast.testing.zookeeper_harness import ZooKeeperEnsembleHarness

LONG = 20.0  # rides out an election, also on a slow machine
SHORT = 2.0
ELECTION = 60.0  # seconds: nothing here takes that long
LIMITS = {"syncLimit": 8, "initLimit": 8}  # ticks


class AsyncEnsembleSuite(AsyncBase):
    """A test, its clients, and three servers; clients may be bound to one of them."""

    harness: ClassVar[ZooKeeperEnsembleHarness]

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test, then let all servers run and reach each other."""
        try:
            await super().conduct(test, **arguments)
        finally:
            self.ensemble.heal()
            for server in self.ensemble.servers:
                if server.paused:
                    server.resume()
                if not server.running:
                    server.start()
            self.ensemble.until_agreed()

    @property
    def ensemble(self) -> ZooKeeperEnsemble:
        """The servers."""
        return self.harness.ensemble

    def bound_to(self, *numbers: int, **options: Any) -> holdfast.Client:
        """Return a client that knows only these servers."""
        ports = ",".join(f"127.0.0.1:{self.ensemble.servers[n].port}" for n in numbers)
        options = {"namespace": self.namespace, **options}
        client = holdfast.connect(f"zookeeper://{ports}", **options)
        self._clients.append(client)
        return client

    async def succeeded(
        self, lease: holdfast.Lease, waiter: AsyncSpawned[tuple[holdfast.Lease, float]]
    ) -> None:
        """Wait for the next holder; the last one must have stopped to hold before."""
        second, at = await waiter.result(ELECTION)
        assert not lease.held
        assert vars(lease)["_deadline"] < at, "two held at the same time"
        assert second.token > lease.token
        assert second.held
        assert await second.release() is True

    async def take_later(self, client: holdfast.Client, ttl: float) -> tuple[holdfast.Lease, float]:
        """Acquire what must be had, some time, and return when."""
        lease = await self.take(client.lock("x", ttl=ttl), ELECTION)
        return lease, boot_clock()


class TestLeaders(AsyncEnsembleSuite):
    """The leader goes, clients know all servers: the session goes on, the token stays."""

    harness = ZooKeeperEnsembleHarness(options=LIMITS)

    async def survive(self, stop: Callable[[], None]) -> None:
        """Hold a lock, with a waiter, while the leader stops."""
        other = self.connect(connect_timeout=ELECTION)
        lease = await self.take(self.client.lock("x", ttl=LONG))
        waiter = await self.queue(other, other.lock("x", ttl=LONG), ELECTION)
        stop()

        async def confirmed() -> bool:
            try:
                await lease.extend()
            except holdfast.OutcomeUnknown:
                return False
            return True

        end = time.monotonic() + ELECTION
        while not await confirmed():
            assert time.monotonic() < end
            await asleep(0.1)
        assert lease.held
        assert not waiter.done
        assert await lease.release() is True
        second = await waiter.result(ELECTION)
        assert second.token > lease.token
        assert await second.release() is True

    async def test_killed_leader(self) -> None:
        """A new leader knows session, holder and queue; its tokens are larger."""
        await self.survive(self.ensemble.servers[self.ensemble.leader()].kill)

    async def test_paused_leader(self) -> None:
        """A leader that stands still is replaced; when it goes on it has nothing to say."""
        await self.survive(self.ensemble.servers[self.ensemble.leader()].pause)

    async def test_killed_follower(self) -> None:
        """Clients of a follower go to another server."""
        await self.survive(self.ensemble.servers[self.ensemble.followers()[0]].kill)


class TestPartitions(AsyncEnsembleSuite):
    """Servers that cannot reach each other, and clients that know only some of them."""

    harness = ZooKeeperEnsembleHarness(options=LIMITS, links=True)

    async def hand_over(self, lonely: int) -> None:
        """Cut the holder's own server off from the others, where somebody waits."""
        others = [n for n in range(3) if n != lonely]
        holder, other = self.bound_to(lonely), self.bound_to(*others, connect_timeout=ELECTION)
        lease = await self.take(holder.lock("x", ttl=SHORT))
        await other.ping()
        waiter = AsyncSpawned(self.take_later, other, SHORT)
        self.ensemble.isolate(lonely)
        await self.succeeded(lease, waiter)

    async def test_own_server_is_cut_off_from_the_leader(self) -> None:
        """The holder's follower goes on answering it, and knows nothing of the next holder."""
        await self.hand_over(self.ensemble.followers()[0])

    async def test_own_server_is_a_leader_cut_off_from_its_followers(self) -> None:
        """The holder's server believes to lead, and the others have elected another."""
        await self.hand_over(self.ensemble.leader())

    async def test_lonely_leader_confirms_nothing(self) -> None:
        """It answers reads and even `sync`, by which nothing is proven; a renewal it cannot."""
        leader = self.ensemble.leader()
        holder = self.bound_to(leader)
        claim = self.claim("x", ttl=LONG)
        await self.grant(holder, claim)
        kazoo = KazooClient(f"127.0.0.1:{self.ensemble.servers[leader].port}", timeout=LONG)
        kazoo.start()
        try:
            self.ensemble.isolate(leader)
            assert kazoo.sync_async("/").get(timeout=5) == "/"
            await self.raises(holdfast.OutcomeUnknown, holder.engine.renew, [claim], 0.5)
        finally:
            self.ensemble.heal()
            kazoo.stop()
            kazoo.close()

    async def test_majority_goes_on(self) -> None:
        """Who holds on the majority's side keeps its lock; a minority grants nothing."""
        lonely = self.ensemble.followers()[0]
        others = [n for n in range(3) if n != lonely]
        holder = self.bound_to(*others)
        there = self.bound_to(lonely, connect_timeout=1.0)
        await there.ping()
        lease = await self.take(holder.lock("x", ttl=SHORT))
        self.ensemble.isolate(lonely)
        await self.raises(holdfast.EngineUnavailable, there.lock("y", ttl=SHORT).acquire)
        assert not await lease.lost.wait(2 * SHORT)
        assert lease.held
        assert await lease.release() is True

    async def test_no_majority_is_no_lock(self) -> None:
        """When no two servers reach each other every lease ends in time, and nobody gets one; all
        goes on afterwards."""
        lease = await self.take(self.client.lock("x", ttl=SHORT))
        self.ensemble.isolate(0)
        self.ensemble.isolate(1)
        await self.until_lost(lease)
        brief = self.connect(connect_timeout=0.5)
        await self.raises(holdfast.EngineUnavailable, brief.lock("y").acquire)
        self.ensemble.heal()
        patient = self.connect(connect_timeout=ELECTION)
        second = await self.take(patient.lock("x"), ELECTION)
        assert second.token > lease.token
        assert await second.release() is True
