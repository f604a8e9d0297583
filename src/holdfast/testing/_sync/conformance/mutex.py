"""(Generated from _async/conformance/mutex.py by tools/unasync.py: do not edit.) One inside at a time, whatever the kind of lock: taking, refusing, handing over (S2, S3)."""

from __future__ import annotations

import time

import holdfast

from ...._concurrency import sleep
from ...running import Spawned, elapsed
from .base import Base
from .kinds import KINDS, Taker, every_kind

WORKERS = 6
ROUNDS = 5
WAITERS = 20


class MutexTests(Base):
    """Every kind of lock that one may hold."""

    @every_kind
    def test_idle_lock_is_granted(self, kind: str) -> None:
        """An idle lock is granted, its lease says what is held, and its release frees it."""
        lock = self.mutex(kind, "x", ttl=20)
        lease = self.take(lock)
        assert lease.name.startswith("x")
        assert lease.held
        assert not lease.suspended
        assert not lease.released
        assert not lease.lost.is_set()
        assert lease.lost_reason is None
        assert len(lease.owner) == 32
        assert lease.ttl == 20
        assert 0 < lease.remaining() < 20
        assert lease.release() is True
        assert lease.released
        assert not lease.held
        assert lease.remaining() == 0
        again = lock.try_acquire()
        assert again is not None
        assert again.owner != lease.owner
        again.release()

    @every_kind
    def test_taken_lock_is_refused_at_once(self, kind: str) -> None:
        """Who does not want to wait gets None while another holds, and a lease after that."""
        other = self.connect()
        mine = self.mutex(kind, "x")
        theirs = self.mutex(kind, "x", other)
        lease = self.take(mine)
        assert theirs.try_acquire() is None
        assert theirs.acquire(timeout=0) is None
        assert mine.try_acquire() is None, "the same client is no exception"
        lease.release()
        second = theirs.try_acquire()
        assert second is not None
        assert mine.try_acquire() is None
        second.release()

    @every_kind
    def test_one_is_inside_at_a_time(self, kind: str) -> None:
        """No increment of an unprotected counter is lost, between two clients and inside each."""
        counter = 0

        def work(lock: Taker[holdfast.Lease]) -> None:
            nonlocal counter
            for _ in range(ROUNDS):
                lease = self.take(lock)
                seen = counter
                sleep(0)
                assert lease.held
                counter = seen + 1
                lease.release()

        clients = [self.connect(), self.connect()]
        locks = [self.mutex(kind, "x", clients[n % 2]) for n in range(WORKERS)]
        workers = [Spawned(work, lock) for lock in locks]
        for worker in workers:
            worker.result()
        assert counter == WORKERS * ROUNDS

    @every_kind
    def test_giving_up_races_with_handing_over(self, kind: str) -> None:
        """Waiters that give up at the very moment they are let in leave no lock behind."""
        other = self.connect()
        got = 0

        def hurry(lock: Taker[holdfast.Lease]) -> None:
            nonlocal got
            for step in range(3 * ROUNDS):
                try:
                    lease = lock.acquire(timeout=self.harness.moment * (step % 4))
                except holdfast.EngineUnavailable:
                    continue  # a server may well need longer than that to answer at all (S7)
                if lease is not None:
                    got += 1
                    sleep(self.harness.moment * (step % 3))
                    lease.release()

        locks = [self.mutex(kind, "x", client) for client in (self.client, other)]
        for lock in locks:  # connections are made
            (self.take(lock)).release()
        workers = [Spawned(hurry, locks[number % 2]) for number in range(WORKERS)]
        for worker in workers:
            worker.result()
        assert got, "their first try is a patient one"
        last = self.take(locks[0])  # or a waiter that gave up was let in all the same
        assert last.release() is True

        def nobody_waits() -> bool:
            return not (self.client.inspect("x")).waiters

        self.until(nobody_waits)

    @every_kind
    def test_release_lets_the_waiter_in(self, kind: str) -> None:
        """A waiter of another client gets in when the holder lets go, with a larger token."""
        other = self.connect()
        lease = self.take(self.mutex(kind, "x"))
        waiter = self.queue(other, self.mutex(kind, "x", other))
        assert not waiter.done
        lease.release()
        second = waiter.result()
        assert second.held
        assert second.token > lease.token
        second.release()

    @every_kind
    def test_first_come_first_served(self, kind: str) -> None:
        """Twenty waiters of two clients get in one by one, in the order in which they came."""
        if not self.promises("fair"):
            return
        order: list[int] = []
        clients = [self.connect(), self.connect()]

        def pass_through(lock: Taker[holdfast.Lease], number: int) -> None:
            lease = self.take(lock)
            order.append(number)
            lease.release()

        first = self.take(self.mutex(kind, "x"))
        waiters = []
        for number in range(WAITERS):
            client = clients[number % 2]
            heard = self.listen(client)
            lock = self.mutex(kind, "x", client)
            waiters.append(Spawned(pass_through, lock, number))
            heard.until(holdfast.events.Waiting)
            heard.stop()
        assert order == []
        first.release()
        for waiter in waiters:
            waiter.result()
        assert order == list(range(WAITERS))

    @every_kind
    def test_waiter_that_gives_up_leaves_no_trace(self, kind: str) -> None:
        """None comes only after our place in the queue is withdrawn: nobody waits behind it."""
        other = self.connect()
        lease = self.take(self.mutex(kind, "x"))
        started = time.monotonic()
        brief = 2 * self.harness.brief
        assert (self.mutex(kind, "x", other)).acquire(timeout=brief) is None
        assert elapsed(started) >= brief
        assert (self.client.inspect("x")).waiters == ()
        waiter = self.queue(other, self.mutex(kind, "x", other))
        lease.release()
        (waiter.result()).release()

    @every_kind
    def test_dead_holder_is_replaced(self, kind: str) -> None:
        """What nobody renews is free after its TTL, not before, and then the waiter gets in."""
        lock = self.mutex(kind, "x")
        started = time.monotonic()
        dead = self.die_holding(self.claim("x", kind))
        lease = self.take(lock, timeout=self.ttl + self.harness.patience)
        if self.client.guarantees.expiry == "lease":
            assert elapsed(started) >= self.ttl
        assert lease.token > dead.token
        lease.release()

    def test_renewal_keeps_a_lease(self) -> None:
        """A lease of any kind lives beyond three TTL, with the same token, never suspended."""
        other = self.connect()
        locks = {kind: self.mutex(kind, kind, ttl=self.ttl) for kind in KINDS}
        leases = {kind: self.take(lock) for kind, lock in locks.items()}
        tokens = {kind: lease.token for kind, lease in leases.items()}
        assert other.lock("lock").acquire(timeout=3.2 * self.ttl) is None
        for kind, lease in leases.items():
            assert lease.held
            assert lease.token == tokens[kind]
            assert not lease.suspended
            assert not lease.lost.is_set()
            assert (self.mutex(kind, kind, other)).try_acquire() is None
            assert lease.release() is True

    @every_kind
    def test_broken_lock_goes_to_the_waiter(self, kind: str) -> None:
        """force_release by token ends one hold; the queue stays and moves up (S16)."""
        other = self.connect()
        lease = self.take(self.mutex(kind, "x", ttl=self.ttl))
        waiter = self.queue(other, self.mutex(kind, "x", other))
        assert other.force_release("x", lease.token) == 1
        second = waiter.result()
        self.until_lost(lease)
        assert not lease.held
        assert second.held
        assert second.token > lease.token
        assert lease.release() is False
        assert second.held, "a lost lease frees nothing that is another's"
        second.release()

    @every_kind
    def test_close_frees_what_is_held(self, kind: str) -> None:
        """Closing a client lets the waiter of another in."""
        holder, other = self.connect(), self.connect()
        lease = self.take(self.mutex(kind, "x", holder))
        waiter = self.queue(other, self.mutex(kind, "x", other))
        holder.close()
        assert not lease.held
        (waiter.result()).release()
