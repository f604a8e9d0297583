"""Answers, watches and sessions that are lost between a client and ZooKeeper: nothing is stuck."""

from __future__ import annotations

import time

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.model import Reason
from holdfast.testing.running import AsyncSpawned, elapsed
from holdfast.testing.zookeeper_harness import SharedZooKeeperHarness
from tests._async.zookeeper_suite import CHECK, CREATE, DELETE, LIST, AsyncZooKeeperSuite

LONG = 30.0  # a TTL that nobody waits for
QUICK = 10.0  # what is told, not timed, takes less


class TestLostReplies(AsyncZooKeeperSuite):
    """The servers did what they were asked, and the client does not hear of it."""

    harness = SharedZooKeeperHarness()

    async def test_claim(self) -> None:
        """The node that was made is found again by its owner: one node, and its own token."""
        await self.cycle(self.client)
        lost = self.proxy.drop_next_reply(self.request(LIST))  # goes out with the claim
        lease = await self.take(self.client.lock("x", ttl=LONG))
        assert lost.is_set()
        (node,) = self.nodes()
        assert lease.owner in node
        assert (await self.client.inspect("x")).holders[0].token == lease.token
        assert lease.held
        assert await lease.release() is True
        assert self.nodes() == []

    async def test_claim_that_does_not_wait(self) -> None:
        """No answer is EngineUnavailable, and the node is found and deleted in the background."""
        await self.cycle(self.client)
        lost = self.proxy.drop_next_reply(self.request(LIST))
        started = time.monotonic()
        await self.raises(holdfast.EngineUnavailable, self.client.lock("x").try_acquire)
        assert lost.is_set()
        await self.until_free()
        assert elapsed(started) < QUICK

    async def test_claim_that_was_queued(self) -> None:
        """The repeated claim keeps the one place it has in the queue."""
        await self.cycle(self.client)
        lease = await self.take(self.connect().lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(self.request(LIST))
        first = AsyncSpawned(self.take, self.client.lock("x", ttl=LONG))
        await self.until_so(lambda: lost.is_set() and len(self.nodes()) == 2)
        other = self.connect()
        second = await self.queue(other, other.lock("x", ttl=LONG))
        assert await lease.release() is True
        one = await first.result()
        assert not second.done
        assert await one.release() is True
        assert await (await second.result()).release() is True
        assert self.nodes() == []

    async def test_claim_of_a_waiter_that_gives_up(self) -> None:
        """None means that the place in the queue is gone, whatever answer was lost before."""
        await self.cycle(self.client)
        lease = await self.take(self.connect().lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(self.request(LIST))
        assert await self.client.lock("x").acquire(timeout=2.0) is None
        assert lost.is_set()
        assert len(self.nodes()) == 1
        assert await lease.release() is True

    async def test_renewal(self) -> None:
        """A renewal without an answer is repeated on the next connection; it is held all along."""
        heard = self.listen(self.client)
        lease = await self.take(self.client.lock("x", ttl=3))
        lost = self.proxy.drop_next_reply(CHECK)
        await heard.until(holdfast.events.Renewed, 2)
        assert lost.is_set()
        assert lease.held
        assert "Lost" not in heard.kinds()
        assert await lease.release() is True

    async def test_release(self) -> None:
        """The answer is None, the lock is free for others, and a repeated release harms nobody."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(self.request(DELETE))
        assert await lease.release() is None
        assert lost.is_set()
        assert not lease.held
        second = await self.take(self.connect().lock("x", ttl=LONG))
        assert second.token > lease.token
        await self.client.close()  # the repeated release has come, and was nobody's
        assert second.held
        assert await second.release() is True

    async def test_release_with_a_waiter(self) -> None:
        """The waiter is let in once; the repeated release takes nothing away from it."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(self.request(DELETE))
        assert await lease.release() is None
        assert lost.is_set()
        second = await waiter.result()
        await self.client.close()
        await second.ensure_held(LONG / 2)
        assert await second.release() is True

    async def test_force(self) -> None:
        """Breaking a lock may have happened or not: OutcomeUnknown; here the holder finds out."""
        lease = await self.take(self.client.lock("x", ttl=3))
        other = self.connect()
        await other.inspect("x")
        lost = self.proxy.drop_next_reply(self.request(DELETE))
        await self.raises(holdfast.OutcomeUnknown, other.force_release, "x")
        assert lost.is_set()
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.FORCED
        assert await other.force_release("x") == 0
        assert self.nodes() == []

    async def test_looking(self) -> None:
        """Looking changes nothing, so no answer is EngineUnavailable; the next look sees."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(self.request(LIST))
        await self.raises(holdfast.EngineUnavailable, self.client.inspect, "x")
        assert lost.is_set()
        assert (await self.client.inspect("x")).holders
        assert lease.held
        assert await lease.release() is True

    async def test_greeting(self) -> None:
        """A session whose first answer was lost is made again."""
        lost = self.proxy.drop_next_reply(bytes(16))  # no password yet
        await self.cycle(self.client)
        assert lost.is_set()

    async def test_missing_record(self) -> None:
        """A record that ZooKeeper has removed meanwhile is made again, in the same call."""
        await self.cycle(self.client)
        with self.kazoo() as kazoo:
            kazoo.delete(self.path("x"))
        await self.cycle(self.client)


class TestLostSessions(AsyncZooKeeperSuite):
    """The session ends, and everything with it."""

    harness = SharedZooKeeperHarness()

    async def test_holder_is_told(self) -> None:
        """Leases of a session that the servers have ended are lost as expired, at once."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        started = time.monotonic()
        self.expire(self.client, LONG)
        await self.until_lost(lease)
        assert elapsed(started) < QUICK
        assert lease.lost_reason is Reason.EXPIRED
        assert not lease.held
        assert await self.cycle(self.client) > lease.token, "the client goes on in a new session"

    async def test_waiter_queues_again(self) -> None:
        """A waiter whose session has ended takes a new place, and gets in."""
        lease = await self.take(self.connect().lock("x"))
        waiter = await self.queue(self.client, self.client.lock("x", ttl=LONG))
        old = self.nodes()[1]
        self.expire(self.client, LONG)
        await self.until_so(lambda: len(self.nodes()) == 2 and old not in self.nodes())
        assert not waiter.done
        assert await lease.release() is True
        assert await (await waiter.result()).release() is True

    async def test_node_of_an_old_session_is_not_ours(self) -> None:
        """A claim that is repeated in a new session does not take its old node for its own."""
        lease = await self.take(self.connect().lock("x"))
        claim = self.claim("x", ttl=LONG)
        await self.client.ping()
        await self.client.engine.claim(claim, self.harness.patience)
        (old,) = [node for node in self.nodes() if claim.owner in node]
        self.expire(self.client, LONG)
        await self.until_so(lambda: claim.owner not in str(self.nodes()))
        await self.client.engine.claim(claim, self.harness.patience)
        (new,) = [node for node in self.nodes() if claim.owner in node]
        assert new != old
        assert await self.client.engine.release(claim, self.harness.patience) is False
        assert await lease.release() is True

    async def test_other_sessions_are_not_touched(self) -> None:
        """Every TTL has a session of its own: the end of one leaves the others alone."""
        one = await self.take(self.client.lock("x", ttl=LONG))
        two = await self.take(self.client.lock("y", ttl=LONG + 1))
        self.expire(self.client, LONG)
        await self.until_lost(one)
        assert two.held
        assert await two.release() is True


class TestConnections(AsyncZooKeeperSuite):
    """Connections end, stall and come back; the session goes on."""

    harness = SharedZooKeeperHarness()

    async def test_reset_is_no_loss(self) -> None:
        """A connection that breaks is replaced: same session, same token, waiters wait on."""
        other = self.connect()
        lease = await self.take(self.client.lock("x", ttl=LONG))
        waiter = await self.queue(other, other.lock("x", ttl=LONG))
        nodes = self.nodes()
        for _ in range(3):
            self.proxy.close_all()
            await lease.ensure_held()
            await self.until_confirmed(lease)
        assert self.nodes() == nodes
        assert lease.held
        assert not waiter.done
        assert await lease.release() is True
        assert await (await waiter.result()).release() is True

    async def test_wake_up_that_was_lost(self) -> None:
        """Who was to be woken while it had no connection looks by itself afterwards."""
        direct = self.reach(self.server.url)
        lease = await self.take(direct.lock("x", ttl=LONG))
        waiter = await self.queue(self.client, self.client.lock("x", ttl=3))
        self.proxy.cut()
        assert await lease.release() is True
        self.proxy.close_all()  # what the server had to say is lost
        self.proxy.heal()
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True

    async def test_answer_that_was_not_due(self) -> None:
        """After an answer out of turn nobody knows which is whose: the connection is replaced, and
        the session goes on."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        session = self.session(self.client, LONG)
        skipped = session.answer()
        session._kazoo._pending.appendleft((None, skipped, 999_999))
        assert await lease.release() is not False, "it is asked again, on another connection"
        await self.until_free()
        assert skipped.exception is not None
        assert not session.over
        await self.cycle(self.client)

    async def test_client_of_kazoo_that_gave_up(self) -> None:
        """Whatever ends kazoo's thread: its leases are lost, and the next claim has a new one."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        session = self.session(self.client, LONG)
        session._kazoo.stop()
        await self.until_lost(lease)
        assert session.over
        second = await self.take(self.client.lock("x", ttl=LONG))
        assert second.token > lease.token
        assert await second.release() is True

    async def test_silent_server_is_left(self) -> None:
        """A server that accepts and says nothing is given up: the call ends, and so does close."""
        client = self.connect(connect_timeout=0.5)
        self.proxy.cut()
        started = time.monotonic()
        await self.raises(holdfast.EngineUnavailable, client.ping)
        await client.close(timeout=0.5)
        assert elapsed(started) < QUICK

    async def test_restart(self) -> None:
        """A server that is killed and started again knows the session, its nodes and the queue."""
        other = self.connect()
        lease = await self.take(self.client.lock("x", ttl=4 * LONG))
        waiter = await self.queue(other, other.lock("x", ttl=4 * LONG))
        nodes = self.nodes()
        self.server.restart(keep_data=True)
        await self.until_confirmed(lease)
        assert self.nodes() == nodes
        assert lease.held
        assert not waiter.done
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True

    async def test_server_that_lost_its_data(self) -> None:
        """It refuses for ever who has seen more than it knows: that session is over, and the client
        goes on with another."""
        client = self.connect(connect_timeout=0.5)
        ttl = self.harness.shortest_ttl
        for _ in range(20):
            await self.cycle(client, ttl=ttl)
        lease = await self.take(client.lock("x", ttl=ttl))
        self.server.restart(keep_data=False)
        await self.until_lost(lease)

        async def goes_on() -> bool:
            try:
                return await self.cycle(client, ttl=ttl) > 0
            except holdfast.EngineUnavailable:
                return False

        await self.until(goes_on)

    async def test_pause(self) -> None:
        """A server that stands still longer than the TTL: no `held` outlives its time, and who
        gets the lock afterwards has a larger token."""
        other = self.connect()
        lease = await self.take(self.client.lock("x", ttl=self.ttl))
        waiter = AsyncSpawned(self.take, other.lock("x", ttl=LONG), 3 * self.harness.patience)
        self.server.pause()
        try:
            await self.until_lost(lease)
            await asleep(self.ttl)
        finally:
            self.server.resume()
        second = await waiter.result()
        assert not lease.held
        assert second.token > lease.token
        assert await second.release() is True

    async def test_late_claim_takes_nothing(self) -> None:
        """A claim that was held up on its way and is not wanted any more leaves no node."""
        client = self.connect(connect_timeout=0.5)
        await self.cycle(client)
        self.proxy.cut()
        await self.raises(holdfast.EngineUnavailable, client.lock("x").acquire)
        self.proxy.heal()
        await self.until_free()
        await self.cycle(self.client)


class TestForce(AsyncZooKeeperSuite):
    """Somebody deletes a node."""

    harness = SharedZooKeeperHarness()

    async def test_holder_hears_of_it(self) -> None:
        """A holder is told by the server, long before its next renewal, and rightly."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        (node,) = vars(self.session(self.client, LONG))["nodes"].values()
        await self.until_so(lambda: node.guarded)
        started = time.monotonic()
        assert await self.connect().force_release("x") == 1
        await self.until_lost(lease)
        assert elapsed(started) < LONG / 6
        assert lease.lost_reason is Reason.FORCED

    async def test_by_hand(self) -> None:
        """A node that an administrator deletes with another tool is noticed as well."""
        lease = await self.take(self.client.lock("x", ttl=3))
        with self.kazoo() as kazoo:
            kazoo.delete(f"{self.path('x')}/{self.nodes()[0]}")
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.FORCED

    async def test_waiter_that_was_deleted(self) -> None:
        """A waiter whose node somebody has deleted comes again, at the end of the queue."""
        lease = await self.take(self.client.lock("x"))
        waiter = await self.queue(self.client, self.client.lock("x"))
        with self.kazoo() as kazoo:
            kazoo.delete(f"{self.path('x')}/{self.nodes()[1]}")
        assert await lease.release() is True
        second = AsyncSpawned(waiter.result)
        assert await (await second.result()).release() is True

    async def test_unfinished_tries(self) -> None:
        """CREATE and DELETE are what goes over the wire for a try that finds the lock busy."""
        lease = await self.take(self.client.lock("x"))
        for kind in (CREATE, DELETE):
            lost = self.proxy.drop_next_reply(self.request(kind))
            other = self.connect()
            await other.ping()
            await self.raises(holdfast.EngineUnavailable, other.lock("x").try_acquire)
            assert lost.is_set()
            await self.until_so(lambda: len(self.nodes()) == 1)
        assert lease.held
        assert await lease.release() is True
