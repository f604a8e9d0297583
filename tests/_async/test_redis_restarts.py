"""Redis servers that stop, start again or are replaced: what is kept, what is lost, who is told."""

from __future__ import annotations

import re
import time
from typing import Any

import holdfast.aio as holdfast
from holdfast.model import Fault, Reason
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.running import AsyncSpawned, elapsed
from holdfast.testing.servers import RedisServer, need, redis_program
from tests._async.redis_suite import AsyncRedisSuite

LONG = 30.0  # a TTL that nobody waits for


class TestRestartWithData(AsyncRedisSuite):
    """A server that writes everything to disk before it answers."""

    harness = RedisHarness(persist=True)

    async def test_lease_goes_on(self) -> None:
        """The lease is renewed under the same token, the queue is as it was, tokens rise."""
        heard = self.listen(self.client)
        lease = await self.take(self.client.lock("x", ttl=3))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=3))
        self.harness.restart(keep_data=True)
        heard.events.clear()
        await heard.until(holdfast.events.Renewed)
        assert lease.held
        assert lease.token == self.floor("x")
        assert not waiter.done
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True

    async def test_no_answer_while_it_is_down(self) -> None:
        """Without a server claims are EngineUnavailable, and a lease is held until its time is
        over; afterwards all goes on."""
        lease = await self.take(self.client.lock("x", ttl=1))
        self.server.kill()
        client = self.connect(connect_timeout=0.3)
        await self.raises(holdfast.EngineUnavailable, client.lock("y").try_acquire)
        assert lease.held
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.UNREACHABLE
        self.server.start()
        assert await self.cycle(self.client) > lease.token


class TestRestartWithoutData(AsyncRedisSuite):
    """A server that keeps nothing: it forgets who held what."""

    harness = RedisHarness()

    async def test_loss_is_told_and_tokens_rise(self) -> None:
        """The holder learns it at its next renewal; whoever comes next has a higher token."""
        lease = await self.take(self.client.lock("x", ttl=0.9))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=0.9))
        self.harness.restart(keep_data=False)
        await self.until_lost(lease)
        assert not lease.held
        assert lease.lost_reason in (Reason.EXPIRED, Reason.STOLEN)
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True
        assert Fault.SERVER_RESTART not in self.client.guarantees.exclusive

    async def test_quarantine(self) -> None:
        """With quarantine=True a server that has just started grants nothing for max_ttl, so that
        whoever held before it forgot is over, or knows."""
        strict = {"quarantine": True, "max_ttl": 1.0, "ttl": 0.5, "connect_timeout": 0.5}
        started = time.monotonic()
        self.harness.restart(keep_data=False)
        client = self.connect(**strict)
        assert Fault.SERVER_RESTART in client.guarantees.exclusive
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "quarantine" in str(error)
        lease = await self.take(self.connect(**strict).lock("x"))
        assert elapsed(started) >= 1.0
        assert lease.held
        assert await lease.release() is True
        await self.cycle(client)

    async def test_quarantine_of_a_client_that_was_there(self) -> None:
        """A client that saw the restart keeps to the quarantine too, whatever it does first."""
        client = self.connect(quarantine=True, max_ttl=1.0, ttl=0.5, connect_timeout=0.5)
        await self.until_granted(client)
        started = time.monotonic()
        self.harness.restart(keep_data=False)
        await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        await self.until_granted(client)
        assert elapsed(started) >= 1.0


class TestReplicas(AsyncRedisSuite):
    """A master with one replica."""

    harness = RedisHarness()
    replica: RedisServer

    @classmethod
    def setup_class(cls) -> None:
        """Start both, and wait until the replica follows."""
        super().setup_class()
        cls.replica = RedisServer(need(redis_program), replica_of=cls.harness.server).start()

    @classmethod
    def teardown_class(cls) -> None:
        """Stop both."""
        cls.replica.stop()
        super().teardown_class()

    async def conduct(self, test: Any, **arguments: Any) -> None:
        """Run one test with a replica that follows the master."""
        if self.replica.paused:
            self.replica.resume()
        self.replica.command("REPLICAOF", "127.0.0.1", self.server.port)
        await self.until_so(
            lambda: "master_link_status:up" in self.replica.command("INFO", "replication")
        )
        await super().conduct(test, **arguments)

    async def test_enough_replicas(self) -> None:
        """With replicas=1 a grant counts once the replica has it, pushed ones too."""
        client = self.connect(replicas=1)
        lease = await self.take(client.lock("x"))
        assert int(self.replica.command("HGET", self.key("x"), "f")) == lease.token
        other = self.connect(replicas=1)
        waiter = await self.queue(other, other.lock("x"))
        assert await lease.release() is True
        second = await waiter.result()
        assert int(self.replica.command("HGET", self.key("x"), "f")) == second.token
        assert await second.release() is True

    async def test_too_few_replicas(self) -> None:
        """Without enough replicas no grant counts, and what was granted is given back."""
        client = self.connect(replicas=2, connect_timeout=0.5)
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert re.search("only [01] of 2 replicas", str(error))
        await self.until_free("x")
        wait = client.lock("x", timeout=0.5).acquire
        await self.raises(holdfast.EngineUnavailable, wait)
        await self.until_free("x")

    async def test_silent_replica(self) -> None:
        """A replica that is connected and stands still confirms nothing; what a client asks
        beside it, from other tasks or threads, is no confirmation either."""
        client = self.connect(replicas=1, connect_timeout=1)
        await self.cycle(client)
        held = await self.take(client.lock("held", ttl=LONG))
        self.replica.pause()
        attempts = [
            AsyncSpawned(client.lock(f"x{number}", ttl=LONG).try_acquire) for number in range(4)
        ]
        looks = [AsyncSpawned(client.inspect, "held") for _ in range(4)]
        for attempt in attempts:
            await self.raises(holdfast.EngineUnavailable, attempt.result)
        for look in looks:
            await look.result()
        assert held.held
        self.replica.resume()
        for number in range(4):
            await self.until_free(f"x{number}")
        assert await held.release() is True

    async def test_pushed_grant_without_replicas(self) -> None:
        """A waiter that is let in while no replica confirms does not count itself as holder."""
        client = self.connect(replicas=1, connect_timeout=0.5)
        lease = await self.take(client.lock("x", ttl=LONG))
        waiter = AsyncSpawned(client.lock("x", ttl=LONG).acquire, timeout=0.8)
        await self.until_so(lambda: self.waiting("x") == 1)
        self.replica.pause()
        assert await lease.release() is True
        try:
            assert await waiter.result() is None
        except holdfast.EngineUnavailable:
            pass
        self.replica.resume()
        await self.until_free("x")

    async def test_failover_to_a_lagging_replica(self) -> None:
        """The replica that takes over has missed the last grants: the holder is told at its next
        renewal, whoever waits gets in, and tokens rise over the gap."""
        first = await self.cycle(self.client)
        await self.until_so(lambda: self.replica.command("EXISTS", self.key("x")))
        self.replica.command("REPLICAOF", "NO", "ONE")  # from here on it misses everything
        try:
            last = first
            for _ in range(20):
                last = await self.cycle(self.client)
            lease = await self.take(self.client.lock("x", ttl=0.9))
            other = self.connect()
            waiter = await self.queue(other, other.lock("x", ttl=0.9))
            assert int(self.replica.command("HGET", self.key("x"), "f")) == first < last
            self.proxy.lead_to(self.replica.port)
            self.proxy.close_all()
            await self.until_lost(lease)
            second = await waiter.result()
            assert second.token > lease.token > last
            assert int(self.replica.command("HGET", self.key("x"), "f")) == second.token
            assert await second.release() is True
        finally:
            self.proxy.lead_to(self.server.port)
            self.proxy.close_all()

    async def test_master_that_is_demoted(self) -> None:
        """A server that becomes a replica refuses; the connections to it are left, so that the
        same address may lead to the new master, messages included."""
        client = self.connect(connect_timeout=0.5)
        first = await self.cycle(client)
        self.replica.command("REPLICAOF", "NO", "ONE")
        self.server.command("REPLICAOF", "127.0.0.1", self.replica.port)
        try:
            error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
            assert "replica now" in str(error)
            self.proxy.lead_to(self.replica.port)  # the connections that there are stay
            started = time.monotonic()
            await self.until_granted(client, "moved")
            assert await self.cycle(client) > first
            await self.hand_over(client)
            assert elapsed(started) < 10
        finally:
            self.server.command("REPLICAOF", "NO", "ONE")
            self.proxy.lead_to(self.server.port)
            self.proxy.close_all()
