"""Messages that are lost or late between a client and Redis: no lock is stuck, no token repeats."""

from __future__ import annotations

import time

import holdfast.aio as holdfast
from holdfast._async.engines.redis import CLAIM, FORCE, INSPECT, RELEASE, RENEW
from holdfast._concurrency import asleep
from holdfast.model import Grant, Queued, Reason
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.running import AsyncSpawned, elapsed
from tests._async.redis_suite import AsyncRedisSuite

LONG = 30.0  # a TTL that nobody waits for
QUICK = 9.0  # what is told, not timed, takes less


class TestLostReplies(AsyncRedisSuite):
    """The server did what it was asked, and the client does not hear of it."""

    harness = RedisHarness()

    async def test_claim(self) -> None:
        """The claim is repeated by its owner and gets the same token: it was granted once."""
        await self.warm_up(self.client)
        lost = self.proxy.drop_next_reply(CLAIM.digest)
        lease = await self.take(self.client.lock("x", ttl=LONG))
        assert lost.is_set()
        assert lease.token == self.floor("x")
        assert lease.held
        assert await lease.release() is True
        assert self.keys() == [self.key("warm"), self.key("x")]

    async def test_claim_that_does_not_wait(self) -> None:
        """No answer is EngineUnavailable, and what was granted is given back in the background."""
        await self.warm_up(self.client)
        lost = self.proxy.drop_next_reply(CLAIM.digest)
        started = time.monotonic()
        lock = self.client.lock("x", ttl=LONG)
        await self.raises(holdfast.EngineUnavailable, lock.try_acquire)
        assert lost.is_set()
        await self.until_free("x")
        assert elapsed(started) < QUICK

    async def test_claim_that_was_queued(self) -> None:
        """The repeated claim keeps the one place it has in the queue."""
        await self.warm_up(self.client)
        lease = await self.take(self.connect().lock("x", ttl=LONG))
        calls = self.calls()
        lost = self.proxy.drop_next_reply(CLAIM.digest)
        first = AsyncSpawned(self.take, self.client.lock("x", ttl=LONG))
        # Twice: before it has asked again it hears nothing, and would be passed over as dead.
        await self.until_so(lambda: lost.is_set() and self.calls() == calls + 2)
        assert self.waiting("x") == 1
        other = self.connect()
        second = await self.queue(other, other.lock("x", ttl=LONG))
        assert self.waiting("x") == 2
        assert await lease.release() is True
        one = await first.result()
        assert not second.done
        assert await one.release() is True
        assert await (await second.result()).release() is True
        await self.until_free("x")

    async def test_claim_of_a_waiter_that_gives_up(self) -> None:
        """None means that the place in the queue is gone, whatever answer was lost before."""
        await self.warm_up(self.client)
        lease = await self.take(self.connect().lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(CLAIM.digest)
        assert await self.client.lock("x").acquire(timeout=0.3) is None
        assert lost.is_set()
        assert self.server.command("EXISTS", f"{self.key('x')}:q") == 0
        assert await lease.release() is True

    async def test_renewal(self) -> None:
        """The lease is suspended, the next renewal resumes it; it is held all the time."""
        await self.warm_up(self.client)
        heard = self.listen(self.client)
        lease = await self.take(self.client.lock("x", ttl=1))
        lost = self.proxy.drop_next_reply(RENEW.digest)
        await heard.until(holdfast.events.Suspended)
        assert lost.is_set()
        assert lease.held
        await heard.until(holdfast.events.Resumed)
        assert lease.held
        assert lease.token == self.floor("x")
        assert await lease.release() is True

    async def test_extend(self) -> None:
        """Whether it was extended is unknown: the lease counts on the shorter time, and goes on."""
        await self.warm_up(self.client)
        lease = await self.take(self.client.lock("x", ttl=1))
        lost = self.proxy.drop_next_reply(RENEW.digest)
        await self.raises(holdfast.OutcomeUnknown, lease.extend, LONG)
        assert lost.is_set()
        assert 0 < lease.remaining() <= 1
        await lease.extend(LONG)
        assert lease.remaining() > 1
        assert await lease.release() is True

    async def test_release(self) -> None:
        """The answer is None at once, the lock is free for others, and stays so."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(RELEASE.digest)
        started = time.monotonic()
        assert await lease.release() is None
        assert lost.is_set()
        assert not lease.held
        second = await self.take(self.connect().lock("x", ttl=LONG))
        assert elapsed(started) < QUICK
        assert second.token > lease.token
        await self.client.close()  # the repeated release has come, and was nobody's
        assert second.held
        assert await second.release() is True

    async def test_release_with_a_waiter(self) -> None:
        """The waiter is let in once; the repeated release takes nothing away from it."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=LONG))
        self.proxy.drop_next_reply(RELEASE.digest)
        assert await lease.release() is None
        second = await waiter.result()
        await self.client.close()
        assert second.token == self.floor("x")
        await second.ensure_held(LONG / 2)
        assert await second.release() is True

    async def test_force(self) -> None:
        """Breaking a lock may have happened or not: OutcomeUnknown; here the holder was told."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        await self.warm_up(other)
        lost = self.proxy.drop_next_reply(FORCE.digest)
        await self.raises(holdfast.OutcomeUnknown, other.force_release, "x")
        assert lost.is_set()
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.FORCED
        assert await other.force_release("x") == 0
        await self.until_free("x")

    async def test_looking(self) -> None:
        """Looking changes nothing, so no answer is EngineUnavailable; the next look sees."""
        await self.warm_up(self.client)
        lease = await self.take(self.client.lock("x", ttl=LONG))
        for words, call in (
            (INSPECT.digest, lambda: self.client.inspect("x")),
            (b"SCAN", self.client.locks),
            (b"PING", self.client.ping),
        ):
            lost = self.proxy.drop_next_reply(words)
            await self.raises(holdfast.EngineUnavailable, call)
            assert lost.is_set()
            await call()
        assert lease.held
        assert await lease.release() is True

    async def test_greeting(self) -> None:
        """A connection that ends while it is made is made again."""
        lost = self.proxy.drop_next_reply(b"SETNAME")
        await self.hand_over(self.client)
        assert lost.is_set()


class TestLostPushes(AsyncRedisSuite):
    """The lock was handed over, and the new owner does not hear of it in time."""

    harness = RedisHarness()

    async def test_timer(self) -> None:
        """Without the push the waiter finds out by its timer, and has the token of the push."""
        lease = await self.take(self.connect().lock("x", ttl=1))
        waiter = await self.queue(self.client, self.client.lock("x"))
        self.proxy.drop_pushes()
        assert await lease.release() is True
        token = self.floor("x")
        second = await waiter.result()
        assert second.token == token > lease.token
        assert second.held
        assert await second.release() is True
        await self.until_free("x")

    async def test_late_push_is_nobodys(self) -> None:
        """A push that comes after its owner has come and gone takes no lock."""
        lease = await self.take(self.connect().lock("x", ttl=1))
        waiter = await self.queue(self.client, self.client.lock("x"))
        self.proxy.hold_pushes()
        assert await lease.release() is True
        second = await waiter.result()
        assert await second.release() is True
        self.proxy.heal()
        await self.hand_over(self.client, "y")  # pushes come in order: that one has come
        await self.until_free("x")
        assert await self.cycle(self.client) > second.token

    async def test_waiter_that_gives_up_meanwhile(self) -> None:
        """One that was let in and gives up before it hears of it leaves nothing behind."""
        lease = await self.take(self.connect().lock("x", ttl=LONG))
        waiter = AsyncSpawned(self.client.lock("x", ttl=LONG).acquire, timeout=0.5)
        await self.until_so(lambda: self.waiting("x") == 1)
        self.proxy.drop_pushes()
        assert await lease.release() is True
        assert await waiter.result() is None
        await self.until_free("x")

    async def test_force_without_a_push(self) -> None:
        """A holder that does not hear that its lock was broken finds out at the next renewal."""
        lease = await self.take(self.client.lock("x", ttl=1))
        self.proxy.drop_pushes()
        other = self.reach(self.server.url)
        assert await other.force_release("x") == 1
        second = await self.take(other.lock("x"))
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.STOLEN
        assert second.token > lease.token
        assert await second.release() is True


class TestLateCopies(AsyncRedisSuite):
    """Requests that were held up on their way, and come when nobody wants them any more (S6)."""

    harness = RedisHarness()

    async def test_claim_after_its_time(self) -> None:
        """A claim that arrives after its time-out takes nothing and queues nowhere."""
        clients = [self.client, self.connect()]
        for client in clients:
            await self.cycle(client)
        floor = self.floor("x")
        self.proxy.cut()
        for client in clients:
            claim = self.claim("x", ttl=LONG, queue=client is self.client)
            await self.raises(holdfast.OutcomeUnknown, client.engine.claim, claim, 0.1)
        await asleep(0.1)  # as exactly as that we know the server's clock
        self.server.command("CONFIG", "RESETSTAT")
        self.proxy.heal()
        await self.until_so(lambda: self.calls() == 2)
        await self.until_free("x")
        assert self.floor("x") == floor

    async def test_claim_after_its_release(self) -> None:
        """A claim that was withdrawn before it arrived is refused, for as long as it may come."""
        await self.client.ping()
        await self.cycle(self.client)
        floor = self.floor("x")
        direct = self.reach(self.server.url)
        await direct.ping()
        claim = self.claim("x", ttl=LONG)
        self.proxy.cut()
        late = AsyncSpawned(self.client.engine.claim, claim, 5.0)
        await asleep(0.05)  # it is on its way, and still wanted when it arrives
        assert await direct.engine.release(claim, 5.0) is False
        tombstone = f"{self.key('x')}:x:{claim.owner}"
        assert 0 < int(self.server.command("TTL", tombstone)) <= 300
        self.proxy.heal()
        assert isinstance(await late.result(), Queued)
        await self.until_free("x")
        assert self.floor("x") == floor

    async def test_release_after_its_time(self) -> None:
        """A release that was repeated, and comes twice, frees nobody else's lock."""
        lease = await self.take(self.client.lock("x", ttl=1))
        self.proxy.cut()
        assert await lease.release() is None
        direct = self.reach(self.server.url)
        second = await self.take(direct.lock("x", ttl=LONG))
        self.proxy.heal()
        await self.client.close()
        await second.ensure_held(LONG / 2)
        assert await second.release() is True

    async def test_renewal_after_its_time(self) -> None:
        """A renewal that arrives after the TTL revives nothing."""
        claim = self.claim("x", ttl=0.3)
        await self.client.ping()
        await self.grant(self.client, claim)
        self.proxy.cut()
        await self.raises(holdfast.OutcomeUnknown, self.client.engine.renew, [claim], 0.1)
        await asleep(0.3)
        self.proxy.heal()
        direct = self.reach(self.server.url)
        answer = await direct.engine.claim(self.claim("x", ttl=LONG), 5.0)
        assert isinstance(answer, Grant)


class TestConnectingTogether(AsyncRedisSuite):
    """Several calls want the connection that is being made."""

    harness = RedisHarness()

    async def test_in_a_hurry_and_not(self) -> None:
        """Whose time is not over goes on when the time of who began to connect is."""
        self.proxy.cut()
        hurried = AsyncSpawned(self.client.engine.ping, 0.3)
        await asleep(0.05)
        patient = [AsyncSpawned(self.client.engine.ping, 20.0) for _ in range(3)]
        await self.raises(holdfast.EngineUnavailable, hurried.result)
        await asleep(0.05)
        self.proxy.heal()
        for one in patient:
            await one.result()

    async def test_all_in_a_hurry(self) -> None:
        """Each fails when its own time is over."""
        self.proxy.cut()
        started = time.monotonic()
        hurried = [AsyncSpawned(self.client.engine.ping, 0.1 * number) for number in (1, 2, 3)]
        for one in hurried:
            await self.raises(holdfast.EngineUnavailable, one.result)
        assert elapsed(started) >= 0.3
        assert elapsed(started) < QUICK
