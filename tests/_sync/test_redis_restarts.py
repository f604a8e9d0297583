"""(Generated from _async/test_redis_restarts.py by tools/unasync.py: do not edit.) Redis servers that stop, start again or are replaced: what is kept, what is lost, who is told."""

from __future__ import annotations

import re
import time
from typing import Any

import holdfast
from holdfast.model import Fault, Reason
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.running import Spawned, elapsed
from holdfast.testing.servers import RedisServer, need, redis_program
from tests._sync.redis_suite import RedisSuite

LONG = 30.0  # a TTL that nobody waits for


class TestRestartWithData(RedisSuite):
    """A server that writes everything to disk before it answers."""

    harness = RedisHarness(persist=True)

    def test_lease_goes_on(self) -> None:
        """The lease is renewed under the same token, the queue is as it was, tokens rise."""
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=3))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=3))
        self.harness.restart(keep_data=True)
        heard.events.clear()
        heard.until(holdfast.events.Renewed)
        assert lease.held
        assert lease.token == self.floor("x")
        assert not waiter.done
        assert lease.release() is True
        second = waiter.result()
        assert second.token > lease.token
        assert second.release() is True

    def test_no_answer_while_it_is_down(self) -> None:
        """Without a server claims are EngineUnavailable, and a lease is held until its time is
        over; afterwards all goes on."""
        lease = self.take(self.client.lock("x", ttl=1))
        self.server.kill()
        client = self.connect(connect_timeout=0.3)
        self.raises(holdfast.EngineUnavailable, client.lock("y").try_acquire)
        assert lease.held
        self.until_lost(lease)
        assert lease.lost_reason is Reason.UNREACHABLE
        self.server.start()
        assert self.cycle(self.client) > lease.token


class TestRestartWithoutData(RedisSuite):
    """A server that keeps nothing: it forgets who held what."""

    harness = RedisHarness()

    def test_loss_is_told_and_tokens_rise(self) -> None:
        """The holder learns it at its next renewal; whoever comes next has a higher token."""
        lease = self.take(self.client.lock("x", ttl=0.9))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=0.9))
        self.harness.restart(keep_data=False)
        self.until_lost(lease)
        assert not lease.held
        assert lease.lost_reason in (Reason.EXPIRED, Reason.STOLEN)
        second = waiter.result()
        assert second.token > lease.token
        assert second.release() is True
        assert Fault.SERVER_RESTART not in self.client.guarantees.exclusive

    def test_quarantine(self) -> None:
        """With quarantine=True a server that has just started grants nothing for max_ttl, so that
        whoever held before it forgot is over, or knows."""
        strict = {"quarantine": True, "max_ttl": 1.0, "ttl": 0.5, "connect_timeout": 0.5}
        started = time.monotonic()
        self.harness.restart(keep_data=False)
        client = self.connect(**strict)
        assert Fault.SERVER_RESTART in client.guarantees.exclusive
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "quarantine" in str(error)
        lease = self.take(self.connect(**strict).lock("x"))
        assert elapsed(started) >= 1.0
        assert lease.held
        assert lease.release() is True
        self.cycle(client)

    def test_quarantine_of_a_client_that_was_there(self) -> None:
        """A client that saw the restart keeps to the quarantine too, whatever it does first."""
        client = self.connect(quarantine=True, max_ttl=1.0, ttl=0.5, connect_timeout=0.5)
        self.until_granted(client)
        started = time.monotonic()
        self.harness.restart(keep_data=False)
        self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        self.until_granted(client)
        assert elapsed(started) >= 1.0


class TestReplicas(RedisSuite):
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

    def conduct(self, test: Any, **arguments: Any) -> None:
        """Run one test with a replica that follows the master."""
        if self.replica.paused:
            self.replica.resume()
        self.replica.command("REPLICAOF", "127.0.0.1", self.server.port)
        self.until_so(
            lambda: "master_link_status:up" in self.replica.command("INFO", "replication")
        )
        super().conduct(test, **arguments)

    def test_enough_replicas(self) -> None:
        """With replicas=1 a grant counts once the replica has it, pushed ones too."""
        client = self.connect(replicas=1)
        lease = self.take(client.lock("x"))
        assert int(self.replica.command("HGET", self.key("x"), "f")) == lease.token
        other = self.connect(replicas=1)
        waiter = self.queue(other, other.lock("x"))
        assert lease.release() is True
        second = waiter.result()
        assert int(self.replica.command("HGET", self.key("x"), "f")) == second.token
        assert second.release() is True

    def test_too_few_replicas(self) -> None:
        """Without enough replicas no grant counts, and what was granted is given back."""
        client = self.connect(replicas=2, connect_timeout=0.5)
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert re.search("only [01] of 2 replicas", str(error))
        self.until_free("x")
        wait = client.lock("x", timeout=0.5).acquire
        self.raises(holdfast.EngineUnavailable, wait)
        self.until_free("x")

    def test_silent_replica(self) -> None:
        """A replica that is connected and stands still confirms nothing; what a client asks
        beside it, from other tasks or threads, is no confirmation either."""
        client = self.connect(replicas=1, connect_timeout=1)
        self.cycle(client)
        held = self.take(client.lock("held", ttl=LONG))
        self.replica.pause()
        attempts = [
            Spawned(client.lock(f"x{number}", ttl=LONG).try_acquire) for number in range(4)
        ]
        looks = [Spawned(client.inspect, "held") for _ in range(4)]
        for attempt in attempts:
            self.raises(holdfast.EngineUnavailable, attempt.result)
        for look in looks:
            look.result()
        assert held.held
        self.replica.resume()
        for number in range(4):
            self.until_free(f"x{number}")
        assert held.release() is True

    def test_pushed_grant_without_replicas(self) -> None:
        """A waiter that is let in while no replica confirms does not count itself as holder."""
        client = self.connect(replicas=1, connect_timeout=0.5)
        lease = self.take(client.lock("x", ttl=LONG))
        waiter = Spawned(client.lock("x", ttl=LONG).acquire, timeout=0.8)
        self.until_so(lambda: self.waiting("x") == 1)
        self.replica.pause()
        assert lease.release() is True
        try:
            assert waiter.result() is None
        except holdfast.EngineUnavailable:
            pass
        self.replica.resume()
        self.until_free("x")

    def test_failover_to_a_lagging_replica(self) -> None:
        """The replica that takes over has missed the last grants: the holder is told at its next
        renewal, whoever waits gets in, and tokens rise over the gap."""
        first = self.cycle(self.client)
        self.until_so(lambda: self.replica.command("EXISTS", self.key("x")))
        self.replica.command("REPLICAOF", "NO", "ONE")  # from here on it misses everything
        try:
            last = first
            for _ in range(20):
                last = self.cycle(self.client)
            lease = self.take(self.client.lock("x", ttl=0.9))
            other = self.connect()
            waiter = self.queue(other, other.lock("x", ttl=0.9))
            assert int(self.replica.command("HGET", self.key("x"), "f")) == first < last
            self.proxy.lead_to(self.replica.port)
            self.proxy.close_all()
            self.until_lost(lease)
            second = waiter.result()
            assert second.token > lease.token > last
            assert int(self.replica.command("HGET", self.key("x"), "f")) == second.token
            assert second.release() is True
        finally:
            self.proxy.lead_to(self.server.port)
            self.proxy.close_all()

    def test_master_that_is_demoted(self) -> None:
        """A server that becomes a replica refuses; the connections to it are left, so that the
        same address may lead to the new master, messages included."""
        client = self.connect(connect_timeout=0.5)
        first = self.cycle(client)
        self.replica.command("REPLICAOF", "NO", "ONE")
        self.server.command("REPLICAOF", "127.0.0.1", self.replica.port)
        try:
            error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
            assert "replica now" in str(error)
            self.proxy.lead_to(self.replica.port)  # the connections that there are stay
            started = time.monotonic()
            self.until_granted(client, "moved")
            assert self.cycle(client) > first
            self.hand_over(client)
            assert elapsed(started) < 10
        finally:
            self.server.command("REPLICAOF", "NO", "ONE")
            self.proxy.lead_to(self.server.port)
            self.proxy.close_all()
