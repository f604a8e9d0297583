"""(Generated from _async/test_etcd_faults.py by tools/unasync.py: do not edit.) Messages that are lost or late between a client and etcd: no lock is stuck, no token repeats."""

from __future__ import annotations

import time

import holdfast
from holdfast.model import Queued, Reason
from holdfast.testing.etcd_harness import EtcdHarness
from holdfast.testing.running import Spawned, elapsed
from tests._sync.etcd_suite import EtcdSuite

LONG = 30.0  # a TTL that nobody waits for
QUICK = 10.0  # what is told, not timed, takes less


class TestLostReplies(EtcdSuite):
    """The server does what it is asked, and the client does not hear of it."""

    harness = EtcdHarness()

    def ready(self, **options: float) -> holdfast.Client:
        """Return a client whose session is open, and which does not wait long for answers."""
        client = self.connect(**{"connect_timeout": 0.3, "ttl": LONG, **options})
        self.cycle(client, "warm")
        return client

    def test_claim(self) -> None:
        """The claim is repeated by its owner and has the same token: it was granted once."""
        client = self.ready()
        self.proxy.drop_replies()
        taking = Spawned(self.take, client.lock("x"))
        self.until_so(lambda: self.keys("x"))
        self.proxy.heal()
        lease = taking.result()
        assert self.owners("x") == [lease.owner]
        assert lease.held
        assert lease.release() is True
        assert self.keys("x") == []

    def test_claim_that_does_not_wait(self) -> None:
        """No answer is EngineUnavailable, and what was granted is given back in the background."""
        client = self.ready()
        self.proxy.drop_replies()
        self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert len(self.keys("x")) == 1
        self.proxy.heal()
        self.until_free("x")
        self.cycle(client)

    def test_claim_that_was_queued(self) -> None:
        """The repeated claim keeps the one place it has in the queue."""
        client = self.ready()
        lease = self.take(self.client.lock("x"))
        self.proxy.drop_replies()
        first = Spawned(self.take, client.lock("x"))
        self.until_so(lambda: len(self.keys("x")) == 2)
        self.proxy.heal()
        other = self.connect()
        second = self.queue(other, other.lock("x"))
        assert len(self.keys("x")) == 3
        assert lease.release() is True
        one = first.result()
        assert not second.done
        assert one.release() is True
        assert (second.result()).release() is True
        assert self.keys("x") == []

    def test_claim_in_doubt_bars_its_late_copies(self) -> None:
        """Once its owner let go, a copy of a claim that comes later finds a tombstone (S6)."""
        client = self.ready()
        claim = self.claim("x", ttl=LONG)
        self.proxy.drop_replies()
        self.raises(holdfast.OutcomeUnknown, client.engine.claim, claim, 0.3)
        self.proxy.heal()
        keep = self.take(client.lock("kept"))  # the session must not end yet
        client.engine.release(claim, 5.0)
        assert self.keys("x") == []
        assert len(self.tombstones()) == 1
        late = client.engine.claim(claim, 5.0)
        assert late == Queued(0, float("inf"))
        assert self.keys("x") == []
        self.cycle(client)
        assert keep.release() is True
        self.until_so(lambda: not self.tombstones())  # with the session that it was for

    def test_renewal(self) -> None:
        """The lease is suspended, the next renewal resumes it; it is held all the time."""
        client = self.ready(ttl=3.0)
        heard = self.listen(client)
        lease = self.take(client.lock("x"))
        self.proxy.drop_replies()
        heard.until(holdfast.events.Suspended)
        self.proxy.heal()
        assert lease.held
        heard.until(holdfast.events.Resumed)
        assert lease.held
        assert lease.release() is True

    def test_extend(self) -> None:
        """Whether it was extended is unknown: the lease goes on with the time it had."""
        client = self.ready(ttl=3.0)
        lease = self.take(client.lock("x"))
        self.proxy.drop_replies()
        self.raises(holdfast.OutcomeUnknown, lease.extend)
        assert 0 < lease.remaining() < 3
        self.proxy.heal()
        lease.extend()
        assert lease.remaining() > 2
        assert lease.release() is True

    def test_release(self) -> None:
        """The answer is None, the lock is free for others, and stays so."""
        client = self.ready(ttl=3.0)
        lease = self.take(client.lock("x"))
        self.proxy.drop_replies()
        assert lease.release() is None
        assert not lease.held
        assert self.keys("x") == []
        self.proxy.heal()
        second = self.take(self.connect().lock("x", ttl=LONG))
        assert second.token > lease.token
        client.close()  # the repeated release has come, and was nobody's
        assert self.owners("x") == [second.owner]
        assert second.release() is True

    def test_release_and_the_next_of_the_same_client(self) -> None:
        """Who comes next from the same client is another claim: the repeated release is not its."""
        client = self.ready(ttl=3.0)
        first = self.take(client.lock("x"))
        self.proxy.drop_replies()
        assert first.release() is None
        self.proxy.heal()
        second = self.take(client.lock("x"))
        assert second.token > first.token
        second.extend()
        assert self.owners("x") == [second.owner]
        assert second.release() is True
        assert self.keys("x") == []

    def test_release_with_a_waiter(self) -> None:
        """The waiter is let in once; the repeated release takes nothing away from it."""
        client = self.ready(ttl=3.0)
        lease = self.take(client.lock("x"))
        other = self.reach(self.server.url, ttl=LONG)  # not through the proxy
        waiter = self.queue(other, other.lock("x"))
        self.proxy.drop_replies()
        assert lease.release() is None
        second = waiter.result()
        self.proxy.heal()
        client.close()
        second.ensure_held(LONG / 2)
        assert second.release() is True

    def test_force(self) -> None:
        """Breaking a lock may have happened or not: OutcomeUnknown; here the holder was told."""
        lease = self.take(self.reach(self.server.url, ttl=LONG).lock("x"))
        client = self.ready()
        # The first answer passes: it says whom to break.
        seat = self.keys("x")[0].rpartition("/")[2]
        passing = self.proxy.drop_next_reply(seat.encode())
        self.raises(holdfast.OutcomeUnknown, client.force_release, "x")
        assert passing.is_set()
        client.force_release("x")
        self.until_lost(lease)
        assert lease.lost_reason is Reason.FORCED
        assert self.keys("x") == []

    def test_looking(self) -> None:
        """Looking changes nothing, so no answer is EngineUnavailable; the next look sees."""
        client = self.ready()
        lease = self.take(client.lock("x"))
        for call in (lambda: client.inspect("x"), client.locks, client.ping):
            self.proxy.drop_replies()
            self.raises(holdfast.EngineUnavailable, call)
            self.proxy.heal()
            call()
        assert lease.held
        assert lease.release() is True

    def test_opening_a_session(self) -> None:
        """A lease whose grant was not heard of is replaced, and expires unused."""
        client = self.connect(connect_timeout=0.3)
        self.proxy.drop_replies()
        self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        self.proxy.heal()
        self.cycle(client)
        assert len(self.sessions()) == 1


class TestLostSight(EtcdSuite):
    """The watches of a client break: nobody waits for ever."""

    harness = EtcdHarness()

    def test_connections_that_break(self) -> None:
        """A waiter whose stream ended hears on the next one what happened in between."""
        lease = self.take(self.reach(self.server.url).lock("x", ttl=LONG))
        waiter = self.queue(self.client, self.client.lock("x", ttl=LONG))
        self.proxy.cut()
        self.proxy.close_all()
        assert lease.release() is True
        self.proxy.heal()
        started = time.monotonic()
        second = waiter.result()
        assert elapsed(started) < QUICK
        assert second.token > lease.token
        assert second.release() is True

    def test_compaction(self) -> None:
        """Whose watches cannot go on where they were looks again: a waiter as well as a holder."""
        other = self.reach(self.server.url, ttl=LONG)
        first = self.take(other.lock("x"))
        between = self.queue(other, other.lock("x"))
        waiter = self.queue(self.client, self.client.lock("x", ttl=LONG))
        held = self.take(self.client.lock("y", ttl=LONG))
        self.proxy.cut()
        self.proxy.close_all()
        assert first.release() is True
        assert (between.result()).release() is True
        for _ in range(3):
            self.cycle(other, "z")
        self.server.ask("kv/compaction", {"revision": self.server.revision(), "physical": True})
        self.proxy.heal()
        third = waiter.result()
        assert third.token > first.token
        assert self.connect().force_release("y") == 1
        self.until_lost(held)  # its session is watched again
        assert held.lost_reason is Reason.FORCED
        assert third.release() is True

    def test_waiters_of_a_semaphore(self) -> None:
        """All who wait for permits get in, one after another, though their stream breaks often."""
        other = self.reach(self.server.url, ttl=LONG)
        held = [self.take(other.semaphore("x", 3)) for _ in range(3)]
        semaphore = self.client.semaphore("x", 3, ttl=LONG)

        def once() -> None:
            assert (self.take(semaphore)).release() is True

        waiters = [Spawned(once) for _ in range(6)]
        self.until_so(lambda: len(self.keys("x")) == 9)
        for lease in held:
            self.proxy.close_all()
            assert lease.release() is True
        for waiter in waiters:
            waiter.result()
        assert self.keys("x") == []
