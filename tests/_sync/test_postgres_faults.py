"""(Generated from _async/test_postgres_faults.py by tools/unasync.py: do not edit.) Messages that are lost or late between a client and PostgreSQL: no lock is stuck, no token
repeats."""

from __future__ import annotations

import time

import holdfast
from holdfast._sync.postgres_door import STALLED
from holdfast._concurrency import sleep
from holdfast.model import Grant, Queued, Reason
from holdfast.rules import DRIFT_RATE
from holdfast.testing.postgres_harness import PostgresHarness
from holdfast.testing.running import Spawned, elapsed
from tests._sync.postgres_suite import PostgresSuite

LONG = 60.0  # a TTL that nobody waits for
QUICK = 20.0  # what is told, not timed, takes less
DELAY = 0.2  # seconds that an answer takes on a slow way, at least
LATE = 0.5  # seconds that one takes where it is measured
CLAIM, RENEW, RELEASE, FORCE, LOOK = (
    f"holdfast.{verb}".encode() for verb in ("claim", "renew", "release", "force", "look")
)


class TestMessages(PostgresSuite):
    """One server, and a proxy that loses what it is told to lose."""

    harness = PostgresHarness()

    # --- The server did what it was asked, and the client does not hear of it. ---

    def test_claim(self) -> None:
        """The claim is repeated by its owner and gets the same token: it was granted once."""
        self.warm_up(self.client)
        lost = self.proxy.drop_next_reply(CLAIM)
        lease = self.take(self.client.lock("x", ttl=LONG))
        assert lost.is_set()
        assert lease.token == self.floor("x")
        assert lease.held
        assert lease.release() is True
        self.until_free("x")

    def test_claim_that_does_not_wait(self) -> None:
        """No answer is EngineUnavailable, and what was granted is given back in the background."""
        self.warm_up(self.client)
        lost = self.proxy.drop_next_reply(CLAIM)
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
        heard = self.listen(self.client)
        lost = self.proxy.drop_next_reply(CLAIM)
        first = Spawned(self.take, self.client.lock("x", ttl=LONG))
        # It has asked again: before, it would be passed over as dead.
        heard.until(holdfast.events.NodeFailed)
        self.until_so(lambda: len(self.links(listening=True)) == 2)
        self.until_so(lambda: self.waiting("x") == 1)
        assert lost.is_set()
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
        lost = self.proxy.drop_next_reply(CLAIM)
        assert self.client.lock("x").acquire(timeout=2) is None
        assert lost.is_set()
        assert self.waiting("x") == 0
        assert lease.release() is True

    def test_renewal(self) -> None:
        """The lease is suspended, the next renewal resumes it; it is held all the time."""
        self.warm_up(self.client)
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=3))
        lost = self.proxy.drop_next_reply(RENEW)
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
        lease = self.take(self.client.lock("x", ttl=3))
        lost = self.proxy.drop_next_reply(RENEW)
        self.raises(holdfast.OutcomeUnknown, lease.extend, LONG)
        assert lost.is_set()
        assert 0 < lease.remaining() <= 3
        lease.extend(LONG)
        assert lease.remaining() > 3
        assert lease.release() is True

    def test_release(self) -> None:
        """The answer is None at once, the lock is free for others, and stays so."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(RELEASE)
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
        self.proxy.drop_next_reply(RELEASE)
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
        lost = self.proxy.drop_next_reply(FORCE)
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
            (LOOK, lambda: self.client.inspect("x")),
            (LOOK, self.client.locks),
            (b"greet", self.client.ping),
        ):
            call()  # prepared, or its name is not sent
            lost = self.proxy.drop_next_reply(words)
            self.raises(holdfast.EngineUnavailable, call)
            assert lost.is_set()
            call()
        assert lease.held
        assert lease.release() is True

    def test_greeting(self) -> None:
        """A connection that ends while it is made is made again."""
        lost = self.proxy.drop_next_reply(b"pg_backend_pid")
        self.hand_over(self.client)
        assert lost.is_set()

    def test_first_use(self) -> None:
        """Tables whose making was not answered are there all the same, and used."""
        self.sql("DROP SCHEMA IF EXISTS elsewhere CASCADE")
        client = self.connect(schema="elsewhere")
        lost = self.proxy.drop_next_reply(b"CREATE TABLE")
        self.hand_over(client)
        assert lost.is_set()
        assert self.sql("SELECT to_regclass('elsewhere.record') IS NOT NULL") == [(True,)]

    # --- A way that is slower than calls have patience. ---

    def test_slow_way(self) -> None:
        """To connect takes three answers, and no call waits for more than one: what one call
        has begun, the next one goes on with."""
        self.sql("DROP SCHEMA IF EXISTS afar CASCADE")  # making the tables takes one more
        client = self.connect(schema="afar")
        self.proxy.delay(DELAY)
        claim = self.claim("x", ttl=LONG)
        for _ in range(2):
            self.raises(holdfast.EngineUnavailable, client.engine.claim, claim, 1.5 * DELAY)
        answer: Grant | Queued | None = None
        for _ in range(5):
            try:
                answer = client.engine.claim(claim, 1.5 * DELAY)
                break
            except (holdfast.EngineUnavailable, holdfast.OutcomeUnknown):
                pass
        assert isinstance(answer, Grant)
        self.proxy.heal()
        assert client.engine.release(claim, self.harness.patience) is True

    def test_connecting_takes_nothing_away(self) -> None:
        """A lease counts from when it was asked for, not from when a connection was (S8)."""
        self.proxy.delay(LATE)
        lease = self.take(self.client.lock("x", ttl=LONG))
        most = LONG * (1 - DRIFT_RATE)
        assert most - 2 * LATE < lease.remaining() <= most - LATE
        self.proxy.heal()
        assert lease.release() is True

    def test_way_that_ended_meanwhile(self) -> None:
        """What was begun and cannot go on is begun anew, by the same call."""
        client = self.connect()
        self.proxy.delay(DELAY)
        self.raises(holdfast.EngineUnavailable, client.engine.ping, 1.5 * DELAY)
        self.proxy.close_all()
        self.proxy.heal()
        client.engine.ping(self.harness.patience)

    def test_way_that_leads_nowhere_meanwhile(self) -> None:
        """What was begun and did not move for long is begun anew."""
        client = self.connect()
        self.proxy.cut()
        self.raises(holdfast.EngineUnavailable, client.engine.ping, DELAY)
        made = self.proxy.connections
        self.raises(holdfast.EngineUnavailable, client.engine.ping, DELAY)
        assert self.proxy.connections == made
        sleep(STALLED)
        self.raises(holdfast.EngineUnavailable, client.engine.ping, DELAY)
        assert self.proxy.connections == made + 1, "the first one ends when the way is whole again"
        self.proxy.heal()
        client.engine.ping(self.harness.patience)

    def test_begun_and_closed(self) -> None:
        """A client that is closed leaves no connection behind that it had only begun."""
        client = self.connect()
        self.proxy.delay(DELAY)
        self.raises(holdfast.EngineUnavailable, client.engine.ping, 1.5 * DELAY)
        assert self.proxy.clients == 1
        client.close()
        self.proxy.heal()
        self.until_so(lambda: self.proxy.clients == 0)

    # --- The lock was handed over, and the new owner does not hear of it in time. ---

    def test_push_that_is_lost(self) -> None:
        """Without the push the waiter finds out by its timer, and has the token of the push."""
        lease = self.take(self.connect().lock("x", ttl=2))
        waiter = self.queue(self.client, self.client.lock("x"))
        self.proxy.drop_pushes()
        assert lease.release() is True
        token = self.floor("x")
        second = waiter.result()
        assert second.token == token > lease.token
        assert second.held
        assert second.release() is True
        self.until_free("x")

    def test_push_that_is_late_is_nobodys(self) -> None:
        """A push that comes after its owner has come and gone takes no lock."""
        lease = self.take(self.connect().lock("x", ttl=2))
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
        waiter = Spawned(self.client.lock("x", ttl=LONG).acquire, timeout=2)
        self.until_so(lambda: self.waiting("x") == 1)
        self.proxy.drop_pushes()
        assert lease.release() is True
        assert waiter.result() is None
        self.until_free("x")

    def test_force_without_a_push(self) -> None:
        """A holder that does not hear that its lock was broken finds out at the next renewal."""
        lease = self.take(self.client.lock("x", ttl=2))
        self.proxy.drop_pushes()
        other = self.reach(self.server.url)
        assert other.force_release("x") == 1
        second = self.take(other.lock("x"))
        self.until_lost(lease)
        assert lease.lost_reason is Reason.STOLEN
        assert second.token > lease.token
        assert second.release() is True

    # --- Requests that come when nobody wants them any more (S6). ---

    def test_claim_after_its_time(self) -> None:
        """A claim that arrives after its time-out takes nothing and queues nowhere."""
        clients = [self.client, self.connect()]
        for client in clients:
            self.cycle(client)
        floor = self.floor("x")
        links = self.links()
        self.proxy.cut()
        for client in clients:
            claim = self.claim("x", ttl=LONG, queue=client is self.client)
            self.raises(holdfast.OutcomeUnknown, client.engine.claim, claim, 0.1)
        sleep(0.5)  # more exactly than that we know the server's clock
        self.proxy.heal()
        self.until_so(lambda: not links & self.links())  # they have run, and ended
        assert self.holders("x") == []
        assert self.waiting("x") == 0
        assert self.floor("x") == floor

    def test_claim_after_its_release(self) -> None:
        """A claim that was withdrawn before it arrived is refused, for as long as it may come."""
        self.cycle(self.client)
        floor = self.floor("x")
        direct = self.reach(self.server.url)
        direct.ping()
        claim = self.claim("x", ttl=LONG)
        self.proxy.cut()
        late = Spawned(self.client.engine.claim, claim, 10.0)
        sleep(0.05)  # it is on its way, and still wanted when it arrives
        assert direct.engine.release(claim, 5.0) is False
        assert self.sql("SELECT 1 FROM holdfast.tombstone WHERE owner = %s", claim.owner)
        self.proxy.heal()
        assert isinstance(late.result(), Queued)
        self.until_free("x")
        assert self.cycle(self.client) > floor

    def test_renewal_after_its_time(self) -> None:
        """A renewal that arrives after the TTL revives nothing."""
        claim = self.claim("x", ttl=0.5)
        self.grant(self.client, claim)
        assert (self.client.engine.renew([claim], 5.0))[0].not_after > 0
        self.proxy.cut()
        self.raises(holdfast.OutcomeUnknown, self.client.engine.renew, [claim], 0.1)
        sleep(0.6)
        self.proxy.heal()
        direct = self.reach(self.server.url)
        direct.ping()
        answer = direct.engine.claim(self.claim("x", ttl=LONG), 5.0)
        assert isinstance(answer, Grant)
