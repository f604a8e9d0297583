"""(Generated from _async/conformance/ending.py by tools/unasync.py: do not edit.) The end of a hold and of a client: release, close, and a lease that nobody kept (S30, S34)."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from typing import Any

import holdfast

from ...._concurrency import Event, sleep
from ....model import Reason
from ...running import Runner, Spawned
from .base import Base
from .kinds import every_kind


class EndingTests(Base):
    """Letting go."""

    def close_soon(self, client: holdfast.Client) -> None:
        """Close a client that has nothing to wait for: it must not use up the time it may take."""
        closing = Spawned(client.close, timeout=6 * self.harness.patience)
        closing.result(self.harness.patience)

    @every_kind
    def test_release_is_true_once(self, kind: str) -> None:
        """True: was ours and is free now. Then False, for ever, and harmless to the next holder."""
        lock = self.mutex(kind, "x")
        first = self.take(lock)
        assert first.release() is True
        assert first.release() is False
        second = self.take(lock)
        assert first.release() is False
        assert second.held
        assert second.release() is True
        assert first.lost_reason is None

    def test_release_by_many_is_true_for_one(self) -> None:
        """Several who release the same lease at once: exactly one is told that it was the one."""
        lease = self.take(self.client.lock("x"))
        callers = [Spawned(lease.release) for _ in range(6)]
        answers = [caller.result() for caller in callers]
        assert sorted(map(bool, answers)) == [False] * 5 + [True]
        assert lease.lost_reason is None
        assert (self.client.inspect("x")).kind is None

    def test_with_releases_whatever_the_body_does(self) -> None:
        """Leaving `with` frees the lock, after an error too, and the error goes on its way."""
        lock = self.client.lock("x")

        def fail() -> None:
            with lock:
                raise KeyError("the body's own")

        with lock as lease:
            assert lease.held
        assert lease.released
        self.raises(KeyError, fail)
        assert (self.client.inspect("x")).kind is None

    def test_close_releases_all(self) -> None:
        """Every lease of a closed client is lost as `closed`, and free for others at once."""
        client = self.connect()
        leases = [self.take(client.lock(f"x/{number}")) for number in range(5)]
        client.close()
        for lease in leases:
            assert not lease.held
            assert lease.lost.is_set()
            assert lease.lost_reason is Reason.CLOSED
        assert list(self.client.locks()) == []

    def test_close_inside_with(self) -> None:
        """A body whose client is closed learns of it on leaving."""
        client = self.connect()

        def body() -> None:
            with client.lock("x", cancel_on_loss=False):
                client.close()

        error = self.raises(holdfast.LeaseLost, body)
        assert error.reason is Reason.CLOSED

    def test_close_wakes_who_waits(self) -> None:
        """Who waits in a client that is closed gets ClientClosed, and leaves the queue."""
        client = self.connect()
        lease = self.take(self.client.lock("x"))
        waiters = [self.queue(client, client.lock("x")) for _ in range(6)]
        self.close_soon(client)
        for waiter in waiters:
            self.raises(holdfast.ClientClosed, waiter.result)

        def no_waiters() -> bool:
            return not (self.client.inspect("x")).waiters

        self.until(no_waiters)
        assert lease.held
        lease.release()

    def test_close_races_with_acquire(self) -> None:
        """Whoever is on the way in when the client is closed holds nothing afterwards."""
        client = self.connect()
        lock = client.semaphore("x", 3)

        def insist() -> None:
            while True:
                lease = self.take(lock)
                sleep(0)  # an instant engine never gives way by itself
                lease.release()

        callers = [Spawned(insist) for _ in range(6)]
        sleep(0.05)
        self.close_soon(client)
        for caller in callers:
            self.raises(holdfast.ClientClosed, caller.result)
        assert (self.client.inspect("x")).kind is None

    def test_use_after_close_is_refused(self) -> None:
        """Every call on a closed client raises ClientClosed, names the engine, and does nothing."""
        client = self.connect()
        lock, election = client.lock("x"), client.election("x", "me")
        lease = self.take(lock)
        client.close()
        assert not lease.held

        @client.singleton("x")
        def job() -> None: ...

        calls: list[Callable[[], Any]] = [
            lock.acquire,
            lock.try_acquire,
            lock.locked,
            client.lock("y", reentrant=True).acquire,
            client.all_of(lock).acquire,
            election.campaign,
            election.leader,
            job,
            client.ping,
            client.locks,
        ]
        for call in calls:
            error = self.raises(holdfast.ClientClosed, call)
            assert error.engine == client.engine.location
        self.raises(holdfast.ClientClosed, client.inspect, "x")
        self.raises(holdfast.ClientClosed, client.force_release, "x")
        assert list(self.client.locks()) == []

    def test_close_twice_is_harmless(self) -> None:
        """Closing again, or closing what was never used, does nothing."""
        self.connect().close()
        client = self.connect()
        lease = self.take(client.lock("x"))
        client.close()
        client.close(timeout=0)
        assert lease.release() is False

    def test_client_is_a_context_manager(self) -> None:
        """Leaving `with client` closes it."""
        with self.connect() as client:
            lease = self.take(client.lock("x"))
            assert lease.held
        assert lease.lost_reason is Reason.CLOSED
        assert (self.client.inspect("x")).kind is None

    def test_close_leaves_nothing_running(self) -> None:
        """After close no task or thread of the client is left."""
        before = Runner.background()
        client = self.connect()
        told = Event()
        client.listen(lambda event: told.set())
        lease = self.take(client.lock("x", ttl=self.ttl))
        assert told.wait(self.harness.patience)
        assert not lease.lost.wait(self.ttl / 2)  # a renewal has started the worker
        assert Runner.background() - before
        client.close()

        def all_gone() -> bool:
            return not Runner.background() - before

        self.until(all_gone)

    def test_dropped_lease_is_released_with_a_warning(self) -> None:
        """A lease that nobody kept is freed, and a ResourceWarning names the lock."""
        other = self.connect()
        heard = self.listen(self.client)
        lease: holdfast.Lease | None = self.take(self.client.lock("forgotten", ttl=60))
        waiter = self.queue(other, other.lock("forgotten"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lease = None
            gc.collect()
        assert lease is None
        told = [one for one in caught if issubclass(one.category, ResourceWarning)]
        assert any("'forgotten'" in str(one.message) for one in told), told
        second = waiter.result()
        heard.until(holdfast.events.Leaked)
        second.release()

    def test_dropped_lease_is_released_where_warnings_are_errors(self) -> None:
        """With `-W error` the warning cannot be raised from a collection; the release comes."""
        lease: holdfast.Lease | None = self.take(self.client.lock("x", ttl=60))
        ignored: list[Any] = []
        hook, sys.unraisablehook = sys.unraisablehook, ignored.append
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                lease = None
                gc.collect()
        finally:
            sys.unraisablehook = hook
        assert lease is None
        self.until_idle("x")
        ignored.clear()

    def test_kept_lease_gives_no_warning(self) -> None:
        """What was released, lost or closed in order is collected without a word."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.connect() as client:
                with client.lock("a") as lease:
                    pass
                lease = self.take(client.lock("b", ttl=self.ttl))
                self.client.force_release("b")
                self.until_lost(lease)
                lease = self.take(client.lock("c"))
            del lease
            gc.collect()
