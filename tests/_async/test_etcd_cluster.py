"""Three etcd servers under faults of their own: leaders that die or stop, partitions, dead members.

Whatever happens, `held` is exclusive, tokens rise, and who can reach a majority goes on.
"""

from __future__ import annotations

import time

import holdfast.aio as holdfast
from holdfast.clocks import boot_clock
from holdfast.etcd_link import KEEP_ALIVE, messages
from holdfast.model import Outcome, Reason
from holdfast.testing.etcd_harness import EtcdClusterHarness
from holdfast.testing.running import elapsed
from tests._async.etcd_suite import AsyncEtcdClusterSuite

TTL = 5.0  # a new leader is elected well within it
SHORT = 2.0
QUICK = 15.0


class TestLeaders(AsyncEtcdClusterSuite):
    """The leader goes, and another comes."""

    harness = EtcdClusterHarness()

    async def keep(self, lease: holdfast.Lease, heard_from: holdfast.Client) -> None:
        """Return when a lease was renewed, once more, after whatever has happened."""
        heard = self.listen(heard_from)
        await heard.until(holdfast.events.Renewed)
        assert lease.held

    async def test_killed(self) -> None:
        """A holder keeps its lease and token, a waiter its place, over the death of the leader."""
        leader = self.cluster.leader()
        client = self.reach(self.url_of(leader, *self.others(leader)), ttl=TTL)
        other = self.reach(self.url_of(*self.others(leader)), ttl=TTL)
        lease = await self.take(client.lock("x"))
        waiter = await self.queue(other, other.lock("x"))
        self.cluster.servers[leader].kill()
        await self.keep(lease, client)
        assert not waiter.done
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True
        self.cluster.servers[leader].start()
        self.cluster.until_healthy()
        assert await self.cycle(client) > second.token

    async def test_paused(self) -> None:
        """A leader that stops for a while, and comes back with old ideas, takes nothing away."""
        leader = self.cluster.leader()
        client = self.reach(self.url_of(leader, *self.others(leader)), ttl=TTL)
        lease = await self.take(client.lock("x"))
        self.cluster.servers[leader].pause()
        self.cluster.leader(among=self.others(leader))
        await self.keep(lease, client)
        self.cluster.servers[leader].resume()
        await self.keep(lease, client)
        assert await self.connect().lock("x").try_acquire() is None
        assert await lease.release() is True

    async def test_paused_for_longer_than_the_ttl(self) -> None:
        """Who talks to the others holds on; who only knows the one that stopped loses in time."""
        leader = self.cluster.leader()
        stuck = self.reach(self.url_of(leader), ttl=SHORT)
        lucky = self.reach(self.url_of(*self.others(leader)), ttl=SHORT)
        lost, kept = await self.take(stuck.lock("x")), await self.take(lucky.lock("y"))
        waiter = await self.queue(lucky, lucky.lock("x"))
        self.cluster.servers[leader].pause()
        second = await waiter.result()
        assert lost._deadline <= boot_clock()
        assert not lost.held
        assert second.token > lost.token
        assert kept.held
        # Before it comes back: etcd up to 3.4.30 and 3.5.12 lets an old leader revoke leases then.
        assert await second.release() is True
        assert await kept.release() is True
        self.cluster.servers[leader].resume()
        self.cluster.until_healthy()
        assert await self.cycle(stuck) > second.token

    async def test_moves_on_by_itself(self) -> None:
        """Every server is stopped once, one after another: a client of all of them goes on."""
        token = await self.cycle(self.client)
        for server in self.cluster.servers:
            server.pause()
            started = time.monotonic()
            lease = await self.client.lock("x").try_acquire()
            assert elapsed(started) < QUICK
            assert lease is not None
            assert lease.token > token
            token = lease.token
            assert await lease.release() is True
            server.resume()
            self.cluster.until_healthy()


class TestPartitions(AsyncEtcdClusterSuite):
    """Servers do not hear each other; clients reach all of them."""

    harness = EtcdClusterHarness()

    async def test_own_server_is_cut_off(self) -> None:
        """Whose only server was cut off from the rest loses its lease before another gets it."""
        for number in (self.cluster.leader(), self.others(self.cluster.leader())[0]):
            alone = self.reach(self.url_of(number), ttl=SHORT, connect_timeout=0.5)
            others = self.reach(self.url_of(*self.others(number)), ttl=3 * TTL)
            lease = await self.take(alone.lock("x"))
            waiter = await self.queue(others, others.lock("x"))
            self.cluster.isolate(number)
            second = await waiter.result()
            assert lease._deadline <= boot_clock()
            assert not lease.held
            assert lease.lost_reason is Reason.UNREACHABLE
            assert second.token > lease.token
            await self.raises(holdfast.EngineUnavailable, alone.lock("y").try_acquire)
            self.cluster.heal()
            self.cluster.until_healthy()
            assert await second.release() is True
            assert await self.cycle(alone) > second.token

    async def test_several_servers_are_known(self) -> None:
        """Who knows a server on the other side of the partition keeps its lease."""
        leader = self.cluster.leader()
        client = self.reach(self.url_of(leader, *self.others(leader)), ttl=TTL)
        lease = await self.take(client.lock("x"))
        self.cluster.isolate(leader)
        self.cluster.leader(among=self.others(leader))
        heard = self.listen(client)
        await heard.until(holdfast.events.Renewed, 2)
        assert lease.held
        self.cluster.heal()
        self.cluster.until_healthy()
        assert await lease.release() is True

    async def test_watch_of_a_server_that_is_cut_off(self) -> None:
        """A waiter whose server hears of nothing any more is told by another one."""
        leader = self.cluster.leader()
        follower = self.others(leader)[0]
        waiting = self.reach(self.url_of(follower, leader), ttl=30)
        holding = self.reach(self.url_of(leader), ttl=30)
        lease = await self.take(holding.lock("x"))
        waiter = await self.queue(waiting, waiting.lock("x"))
        self.cluster.isolate(follower)
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True

    async def test_no_majority(self) -> None:
        """Without a leader nothing is granted and what is held ends in time; then all goes on."""
        client = self.connect(ttl=SHORT, connect_timeout=1.0)
        lease = await self.take(client.lock("x"))
        self.cluster.isolate(0, 1, 2)
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.UNREACHABLE
        await self.raises(holdfast.EngineUnavailable, client.lock("y").try_acquire)
        self.cluster.heal()
        self.cluster.until_healthy()
        second = await self.take(self.connect().lock("x"))
        assert second.token > lease.token
        assert not lease.held
        assert await second.release() is True

    async def test_old_leader_confirms_nothing(self) -> None:
        """A leader that was cut off may still answer keep-alives: they do not count (S12)."""
        leader = self.cluster.leader()
        client = self.reach(self.url_of(leader), ttl=TTL)
        claim = self.claim("x", ttl=TTL)
        grant = await self.grant(client, claim)
        engine = client.engine
        session = engine._sessions.tenants[claim.owner].session  # type: ignore[attr-defined]
        self.cluster.isolate(leader)
        request = messages.LeaseKeepAliveRequest(ID=session.lease)
        try:
            beat = await engine.link.call(KEEP_ALIVE, request, 0.4)  # type: ignore[attr-defined]
            assert beat.TTL > 0, "it has answered"
        except holdfast.LockError:
            pass  # it was too late for that: it has noticed
        try:
            (renewal,) = await engine.renew([claim], 1.0)
            assert renewal.outcome is Outcome.UNKNOWN
        except holdfast.LockError:
            pass
        assert session.sent + TTL <= grant.not_after + 0.1 * TTL, "nothing new was confirmed"
        self.cluster.heal()
        self.cluster.until_healthy()
        await engine.release(claim, 5.0)


class TestEndpoints(AsyncEtcdClusterSuite):
    """Which of several servers is talked to."""

    harness = EtcdClusterHarness()

    async def test_dead_members_are_passed_over(self) -> None:
        """A server that refuses connections, or never answers, costs a moment, not the lock."""
        with_dead = self.reach(f"etcd://127.0.0.1:1,{self.url_of(0).removeprefix('etcd://')}")
        await self.cycle(with_dead)
        self.harness.proxies[0].cut()
        with_silent = self.reach(self.url_of(0, 1), connect_timeout=1.0)
        lease = await self.take(with_silent.lock("x"))
        assert await lease.release() is True

    async def test_none_is_there(self) -> None:
        """All dead is EngineUnavailable, at once; the sentence names the servers."""
        client = self.reach("etcd://127.0.0.1:1,127.0.0.1:2")
        started = time.monotonic()
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert elapsed(started) < QUICK
        assert "127.0.0.1:1,127.0.0.1:2" in str(error)

    async def test_failures_are_told(self) -> None:
        """Which server gave no answer is an event."""
        client = self.reach(self.url_of(0, 1), connect_timeout=1.0)
        await self.cycle(client)
        heard = self.listen(client)
        self.harness.proxies[0].cut()
        lease = await self.take(client.lock("x"), timeout=10)
        (failed,) = await heard.until(holdfast.events.NodeFailed)
        assert failed.node == f"127.0.0.1:{self.harness.proxies[0].port}"
        assert await lease.release() is True
