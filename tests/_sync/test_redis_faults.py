"""(Generated from _async/test_redis_faults.py by tools/unasync.py: do not edit.) Messages that are lost or late between a client and Redis: no lock is stuck, no token repeats."""

from __future__ import annotations

import time

import holdfast
from holdfast._sync.engines.redis import CLAIM, FORCE, INSPECT, RELEASE, RENEW
from holdfast._concurrency import sleep
from holdfast.model import Grant, Queued, Reason
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.running import Spawned, elapsed
from tests._sync.redis_suite import RedisSuite

LONG = 30.0  # a TTL that nobody waits for
QUICK = 9.0  # what is told, not timed, takes less


class TestLostReplies(RedisSuite):
    """The server did what it was asked, and the client does not hear of it."""

    harness = RedisHarness()

    def test_claim(self) -> None:
        """The claim is repeated by its owner and gets the same token: it was granted once."""
        self.warm_up(self.client)
        lost = self.proxy.drop_next_reply(CLAIM.digest)
        lease = self.take(self.client.lock("x", ttl=LONG))
        assert lost.is_set()
        assert lease.token == self.floor("x")
        assert lease.held
        assert lease.release() is True
        assert self.keys() == [self.key("warm"), self.key("x")]

    def test_claim_that_does_not_wait(self) -> None:
        """No answer is EngineUnavailable, and what was granted is given back in the background."""
        self.warm_up(self.client)
        lost = self.proxy.drop_next_reply(CLAIM.digest)
        started = time.monotonic()
        lock = self.client.lock("x", ttl=LONG)
        self.raises(holdfast.EngineUnavailable, lock.try_acquire)
        assert lost.is_set()
        self.until_free("x")
        assert elapsed(started) < QUICK

    def test_claim_that_was_queued(self) -> None:
        """The repeated claim keeps the one place it has in the queue."""
        self.warm_up(self.client)
        lease = self.take(self.connect().lock("x", ttl=LONG))
        calls = self.calls()
        lost = self.proxy.drop_next_reply(CLAIM.digest)
        first = Spawned(self.take, self.client.lock("x", ttl=LONG))
        # Twice: before it has asked again it hears nothing, and would be passed over as dead.
        self.until_so(lambda: lost.is_set() and self.calls() == calls + 2)
        assert self.waiting("x") == 1
        other = self.connect()
        second = self.queue(other, other.lock("x", ttl=LONG))
        assert self.waiting("x") == 2
        assert lease.release() is True
        one = first.result()
        assert not second.done
        assert one.release() is True
        assert (second.result()).release() is True
        self.until_free("x")

    def test_claim_of_a_waiter_that_gives_up(self) -> None:
        """None means that the place in the queue is gone, whatever answer was lost before."""
        self.warm_up(self.client)
        lease = self.take(self.connect().lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(CLAIM.digest)
        assert self.client.lock("x").acquire(timeout=0.3) is None
        assert lost.is_set()
        assert self.server.command("EXISTS", f"{self.key('x')}:q") == 0
        assert lease.release() is True

    def test_renewal(self) -> None:
        """The lease is suspended, the next renewal resumes it; it is held all the time."""
        self.warm_up(self.client)
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=1))
        lost = self.proxy.drop_next_reply(RENEW.digest)
        heard.until(holdfast.events.Suspended)
        assert lost.is_set()
        assert lease.held
        heard.until(holdfast.events.Resumed)
        assert lease.held
        assert lease.token == self.floor("x")
        assert lease.release() is True

    def test_extend(self) -> None:
        """Whether it was extended is unknown: the lease counts on the shorter time, and goes on."""
        self.warm_up(self.client)
        lease = self.take(self.client.lock("x", ttl=1))
        lost = self.proxy.drop_next_reply(RENEW.digest)
        self.raises(holdfast.OutcomeUnknown, lease.extend, LONG)
        assert lost.is_set()
        assert 0 < lease.remaining() <= 1
        lease.extend(LONG)
        assert lease.remaining() > 1
        assert lease.release() is True

    def test_release(self) -> None:
        """The answer is None at once, the lock is free for others, and stays so."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(RELEASE.digest)
        started = time.monotonic()
        assert lease.release() is None
        assert lost.is_set()
        assert not lease.held
        second = self.take(self.connect().lock("x", ttl=LONG))
        assert elapsed(started) < QUICK
        assert second.token > lease.token
        self.client.close()  # the repeated release has come, and was nobody's
        assert second.held
        assert second.release() is True

    def test_release_with_a_waiter(self) -> None:
        """The waiter is let in once; the repeated release takes nothing away from it."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=LONG))
        self.proxy.drop_next_reply(RELEASE.digest)
        assert lease.release() is None
        second = waiter.result()
        self.client.close()
        assert second.token == self.floor("x")
        second.ensure_held(LONG / 2)
        assert second.release() is True

    def test_force(self) -> None:
        """Breaking a lock may have happened or not: OutcomeUnknown; here the holder was told."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        self.warm_up(other)
        lost = self.proxy.drop_next_reply(FORCE.digest)
        self.raises(holdfast.OutcomeUnknown, other.force_release, "x")
        assert lost.is_set()
        self.until_lost(lease)
        assert lease.lost_reason is Reason.FORCED
        assert other.force_release("x") == 0
        self.until_free("x")

    def test_looking(self) -> None:
        """Looking changes nothing, so no answer is EngineUnavailable; the next look sees."""
        self.warm_up(self.client)
        lease = self.take(self.client.lock("x", ttl=LONG))
        for words, call in (
            (INSPECT.digest, lambda: self.client.inspect("x")),
            (b"SCAN", self.client.locks),
            (b"PING", self.client.ping),
        ):
            lost = self.proxy.drop_next_reply(words)
            self.raises(holdfast.EngineUnavailable, call)
            assert lost.is_set()
            call()
        assert lease.held
        assert lease.release() is True

    def test_greeting(self) -> None:
        """A connection that ends while it is made is made again."""
        lost = self.proxy.drop_next_reply(b"SETNAME")
        self.hand_over(self.client)
        assert lost.is_set()


class TestLostPushes(RedisSuite):
    """The lock was handed over, and the new owner does not hear of it in time."""

    harness = RedisHarness()

    def test_timer(self) -> None:
        """Without the push the waiter finds out by its timer, and has the token of the push."""
        lease = self.take(self.connect().lock("x", ttl=1))
        waiter = self.queue(self.client, self.client.lock("x"))
        self.proxy.drop_pushes()
        assert lease.release() is True
        token = self.floor("x")
        second = waiter.result()
        assert second.token == token > lease.token
        assert second.held
        assert second.release() is True
        self.until_free("x")

    def test_late_push_is_nobodys(self) -> None:
        """A push that comes after its owner has come and gone takes no lock."""
        lease = self.take(self.connect().lock("x", ttl=1))
        waiter = self.queue(self.client, self.client.lock("x"))
        self.proxy.hold_pushes()
        assert lease.release() is True
        second = waiter.result()
        assert second.release() is True
        self.proxy.heal()
        self.hand_over(self.client, "y")  # pushes come in order: that one has come
        self.until_free("x")
        assert self.cycle(self.client) > second.token

    def test_waiter_that_gives_up_meanwhile(self) -> None:
        """One that was let in and gives up before it hears of it leaves nothing behind."""
        lease = self.take(self.connect().lock("x", ttl=LONG))
        waiter = Spawned(self.client.lock("x", ttl=LONG).acquire, timeout=0.5)
        self.until_so(lambda: self.waiting("x") == 1)
        self.proxy.drop_pushes()
        assert lease.release() is True
        assert waiter.result() is None
        self.until_free("x")

    def test_force_without_a_push(self) -> None:
        """A holder that does not hear that its lock was broken finds out at the next renewal."""
        lease = self.take(self.client.lock("x", ttl=1))
        self.proxy.drop_pushes()
        other = self.reach(self.server.url)
        assert other.force_release("x") == 1
        second = self.take(other.lock("x"))
        self.until_lost(lease)
        assert lease.lost_reason is Reason.STOLEN
        assert second.token > lease.token
        assert second.release() is True


class TestLateCopies(RedisSuite):
    """Requests that were held up on their way, and come when nobody wants them any more (S6)."""

    harness = RedisHarness()

    def test_claim_after_its_time(self) -> None:
        """A claim that arrives after its time-out takes nothing and queues nowhere."""
        clients = [self.client, self.connect()]
        for client in clients:
            self.cycle(client)
        floor = self.floor("x")
        self.proxy.cut()
        for client in clients:
            claim = self.claim("x", ttl=LONG, queue=client is self.client)
            self.raises(holdfast.OutcomeUnknown, client.engine.claim, claim, 0.1)
        sleep(0.1)  # as exactly as that we know the server's clock
        self.server.command("CONFIG", "RESETSTAT")
        self.proxy.heal()
        self.until_so(lambda: self.calls() == 2)
        self.until_free("x")
        assert self.floor("x") == floor

    def test_claim_after_its_release(self) -> None:
        """A claim that was withdrawn before it arrived is refused, for as long as it may come."""
        self.client.ping()
        self.cycle(self.client)
        floor = self.floor("x")
        direct = self.reach(self.server.url)
        direct.ping()
        claim = self.claim("x", ttl=LONG)
        self.proxy.cut()
        late = Spawned(self.client.engine.claim, claim, 5.0)
        sleep(0.05)  # it is on its way, and still wanted when it arrives
        assert direct.engine.release(claim, 5.0) is False
        tombstone = f"{self.key('x')}:x:{claim.owner}"
        assert 0 < int(self.server.command("TTL", tombstone)) <= 300
        self.proxy.heal()
        assert isinstance(late.result(), Queued)
        self.until_free("x")
        assert self.floor("x") == floor

    def test_release_after_its_time(self) -> None:
        """A release that was repeated, and comes twice, frees nobody else's lock."""
        lease = self.take(self.client.lock("x", ttl=1))
        self.proxy.cut()
        assert lease.release() is None
        direct = self.reach(self.server.url)
        second = self.take(direct.lock("x", ttl=LONG))
        self.proxy.heal()
        self.client.close()
        second.ensure_held(LONG / 2)
        assert second.release() is True

    def test_renewal_after_its_time(self) -> None:
        """A renewal that arrives after the TTL revives nothing."""
        claim = self.claim("x", ttl=0.3)
        self.client.ping()
        self.grant(self.client, claim)
        self.proxy.cut()
        self.raises(holdfast.OutcomeUnknown, self.client.engine.renew, [claim], 0.1)
        sleep(0.3)
        self.proxy.heal()
        direct = self.reach(self.server.url)
        answer = direct.engine.claim(self.claim("x", ttl=LONG), 5.0)
        assert isinstance(answer, Grant)


class TestConnectingTogether(RedisSuite):
    """Several calls want the connection that is being made."""

    harness = RedisHarness()

    def test_in_a_hurry_and_not(self) -> None:
        """Whose time is not over goes on when the time of who began to connect is."""
        self.proxy.cut()
        hurried = Spawned(self.client.engine.ping, 0.3)
        sleep(0.05)
        patient = [Spawned(self.client.engine.ping, 20.0) for _ in range(3)]
        self.raises(holdfast.EngineUnavailable, hurried.result)
        sleep(0.05)
        self.proxy.heal()
        for one in patient:
            one.result()

    def test_all_in_a_hurry(self) -> None:
        """Each fails when its own time is over."""
        self.proxy.cut()
        started = time.monotonic()
        hurried = [Spawned(self.client.engine.ping, 0.1 * number) for number in (1, 2, 3)]
        for one in hurried:
            self.raises(holdfast.EngineUnavailable, one.result)
        assert elapsed(started) >= 0.3
        assert elapsed(started) < QUICK
