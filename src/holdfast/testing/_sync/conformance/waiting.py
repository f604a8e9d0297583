"""(Generated from _async/conformance/waiting.py by tools/unasync.py: do not edit.) How long to wait: every way to say it, and what comes of it (S7)."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

import holdfast

from ....model import Seconds
from ...running import elapsed
from .base import Base

a_while = pytest.mark.parametrize("unit", [1.0, timedelta(seconds=1)])
at_once = pytest.mark.parametrize("timeout", [0, 0.0, timedelta(0)])
nonsense = pytest.mark.parametrize(
    "timeout", [-2, -0.5, float("nan"), float("inf"), timedelta(seconds=-3), "5", True, [5]]
)


class WaitingTests(Base):
    """Time-outs of a call, of a lock and of a client."""

    def _busy(self, name: str = "x") -> holdfast.Lease:
        """Let somebody hold the lock, under a label that errors can name."""
        return self.take(self.connect().lock(name, label="somebody else"))

    @at_once
    def test_zero_never_waits(self, timeout: Seconds) -> None:
        """With 0 the answer comes at once, and nobody was ever queued."""
        lease = self._busy()
        heard = self.listen(self.client)
        assert self.client.lock("x").acquire(timeout=timeout) is None
        assert self.client.lock("x", timeout=timeout).acquire() is None
        missed = heard.until(holdfast.events.Missed, 2)
        assert [event.result for event in missed] == ["busy", "busy"]
        assert "Waiting" not in heard.kinds()
        lease.release()

    @a_while
    def test_a_call_waits_as_told(self, unit: Any) -> None:
        """A fraction of a second is waited out in full, as a number or as a timedelta."""
        lease = self._busy()
        started = time.monotonic()
        timeout = self.harness.brief * unit
        assert self.client.lock("x").acquire(timeout=timeout) is None
        assert elapsed(started) >= self.harness.brief
        lease.release()

    @a_while
    def test_none_means_the_lock_s_own(self, unit: Any) -> None:
        """Without a time-out of the call, that of the lock counts."""
        lease = self._busy()
        started = time.monotonic()
        timeout = self.harness.brief * unit
        assert self.client.lock("x", timeout=timeout).acquire() is None
        assert elapsed(started) >= self.harness.brief
        lease.release()

    @a_while
    def test_none_means_then_the_client_s(self, unit: Any) -> None:
        """Without one of the lock either, that of the client counts, for every kind of lock."""
        client = self.connect(timeout=self.harness.brief * unit)
        lease = self._busy()
        reader = self.take(self.connect().rwlock("r").read())
        started = time.monotonic()
        assert client.lock("x").acquire() is None
        assert client.rwlock("r").write().acquire() is None
        assert client.election("x").campaign() is None
        assert elapsed(started) >= 3 * self.harness.brief
        lease.release()
        reader.release()

    def test_none_at_last_means_for_ever(self) -> None:
        """With no time-out anywhere, the wait ends with the lock."""
        lease = self._busy()
        waiter = self.queue(self.client, _Bare(self.client.lock("x")))
        lease.release()
        (waiter.result()).release()

    def test_minus_one_is_for_ever(self) -> None:
        """-1 overrides the shorter time-out of the lock, and of the client."""
        client = self.connect(timeout=0)
        lease = self._busy()
        by_call = self.queue(client, client.lock("x", timeout=0), timeout=-1)
        by_lock = self.queue(client, _Bare(client.lock("x", timeout=-1)))
        lease.release()
        (by_call.result()).release()
        (by_lock.result()).release()

    def test_blocking_false_never_waits(self) -> None:
        """blocking=False is try_acquire, whatever the lock's own time-out."""
        lease = self._busy()
        assert self.client.lock("x", timeout=60).acquire(blocking=False) is None
        assert self.client.lock("x", timeout=60).try_acquire() is None
        lease.release()
        second = self.client.lock("x").acquire(blocking=False)
        assert second is not None
        second.release()

    def test_blocking_false_takes_no_timeout(self) -> None:
        """Not to wait, and for how long, is a contradiction: ValueError, as in threading."""
        lock = self.client.lock("x")
        with pytest.raises(ValueError, match="blocking"):
            lock.acquire(blocking=False, timeout=1)
        assert (self.client.inspect("x")).kind is None

    @nonsense
    def test_nonsense_is_refused(self, timeout: Any) -> None:
        """What is no time to wait raises one sentence, and nothing is taken or queued."""
        for attempt in (
            lambda: self.client.lock("x", timeout=timeout),
            lambda: self.connect(timeout=timeout),
        ):
            with pytest.raises((ValueError, TypeError), match="timeout must be"):
                attempt()
        with pytest.raises((ValueError, TypeError), match="timeout must be"):
            self.client.lock("x").acquire(timeout=timeout)
        assert (self.client.inspect("x")).kind is None

    def test_with_says_who_is_in_the_way(self) -> None:
        """`with` raises NotAcquired, a TimeoutError that names lock, engine and holder."""
        lease = self._busy()

        def enter() -> None:
            with self.client.lock("x", timeout=self.harness.brief):
                pytest.fail("entered a lock that another holds")

        error = self.raises(holdfast.NotAcquired, enter)
        assert isinstance(error, TimeoutError)
        assert error.name == "x"
        assert error.engine == self.client.engine.location
        for detail in ("'x'", self.client.engine.location, "somebody else", str(lease.token)):
            assert detail in str(error)
        lease.release()

    @pytest.mark.parametrize("kind", ["read", "semaphore", "tree", "group", "decorated"])
    def test_every_with_raises(self, kind: str) -> None:
        """Whatever is entered raises NotAcquired when it is busy, and leaves nothing behind."""
        holder = self.connect()
        locks: dict[str, tuple[Any, Any]] = {
            "read": (holder.lock("x"), self.client.rwlock("x", timeout=0).read()),
            "semaphore": (holder.semaphore("x", 1), self.client.semaphore("x", 1, timeout=0)),
            "tree": (holder.tree("x/y").read(), self.client.tree("x", timeout=0).write()),
            "group": (
                holder.lock("x"),
                self.client.all_of(
                    self.client.lock("a", timeout=0), self.client.lock("x", timeout=0)
                ),
            ),
            "decorated": (holder.lock("x"), self.client.lock("x", timeout=0)),
        }
        busy, wanted = locks[kind]

        def enter() -> None:
            with wanted:
                pytest.fail("entered a lock that another holds")

        lease = self.take(busy)
        error = self.raises(holdfast.NotAcquired, wanted(enter) if "dec" in kind else enter)
        assert "x" in str(error.name)
        assert str(lease.token) in str(error)
        assert [shot.name for shot in self.client.locks()] == ["x"]
        assert lease.release() is True

    def test_locked_says_whether_trying_would_fail(self) -> None:
        """locked() follows the holder, and judges by the kind of lock that asks."""
        lock, rwlock = self.client.lock("x"), self.client.rwlock("x")
        assert not lock.locked()
        reader = self.take(rwlock.read())
        assert lock.locked()
        assert not rwlock.read().locked()
        reader.release()
        assert not lock.locked()
        permit = self.take(self.client.semaphore("s", 2))
        assert not self.client.semaphore("s", 2).locked()
        assert self.client.semaphore("s", 3).locked(), "another limit would be refused"
        permit.release()


class _Bare:
    """A lock that is always acquired without a word about time."""

    def __init__(self, lock: holdfast.Lock) -> None:
        self._lock = lock

    def acquire(
        self, blocking: bool = True, timeout: Seconds | None = None
    ) -> holdfast.Lease | None:
        return self._lock.acquire()

    def try_acquire(self) -> holdfast.Lease | None:
        return self._lock.try_acquire()
