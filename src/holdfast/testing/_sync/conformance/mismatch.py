"""(Generated from _async/conformance/mismatch.py by tools/unasync.py: do not edit.) Another kind of lock, or another limit, under a name in use: refused, nothing changes (S2)."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast

from .base import Base

KINDS = ("lock", "read", "election", "semaphore-1", "semaphore-2", "semaphore-3", "tree")
SAME = ({"lock", "read", "election"},)

PAIRS = [
    (one, other)
    for one in KINDS
    for other in KINDS
    if one != other and not any({one, other} <= same for same in SAME)
]


class MismatchTests(Base):
    """Every kind of lock against every other one."""

    def make(self, client: holdfast.Client, kind: str) -> Any:
        """Return a lock of that kind under the name `x`."""
        if kind.startswith("semaphore-"):
            return client.semaphore("x", int(kind[-1]))
        if kind == "tree":
            return client.tree("x/y").write()
        if kind == "read":
            return client.rwlock("x").read()
        return client.lock("x")

    @pytest.mark.parametrize(("used", "wanted"), PAIRS)
    def test_mismatch_is_refused(self, used: str, wanted: str) -> None:
        """Taking it raises LockMismatch at once, also for who would wait; holder and queue stay."""
        other = self.connect()
        lease = self.take(self.make(self.client, used))
        before = self.client.inspect("x")
        lock = self.make(other, wanted)
        for attempt in (lock.try_acquire, lock.acquire):
            error = self.raises(holdfast.LockMismatch, attempt)
            assert isinstance(error, ValueError)
            assert "x" in str(error.name)
            assert "in use" in str(error)
        after = self.client.inspect("x")
        assert [one.owner for one in after.holders] == [one.owner for one in before.holders]
        assert after.waiters == ()
        assert (after.kind, after.limit) == (before.kind, before.limit)
        assert lease.held
        assert lock.locked()
        assert lease.release() is True

    def test_it_clears_when_idle(self) -> None:
        """Once nobody holds or waits, the name can be used for anything again, tokens rising."""
        tokens = []
        for kind in KINDS:
            lease = self.take(self.make(self.client, kind))
            tokens.append(lease.token)
            lease.release()
        assert tokens == sorted(set(tokens))

    def test_it_clears_when_the_holder_is_dead(self) -> None:
        """A holder whose TTL is over no longer fixes the kind."""
        self.die_holding(self.claim("x"))
        semaphore = self.client.semaphore("x", 2)

        def free() -> bool:
            try:
                lease = semaphore.try_acquire()
            except holdfast.LockMismatch:
                return False
            assert lease is not None
            return lease.release() is True

        self.until(free)

    def test_waiters_fix_the_kind_too(self) -> None:
        """After the holder has gone to a waiter, another limit is still refused."""
        other = self.connect()
        lease = self.take(self.client.lock("x"))
        waiter = self.queue(other, other.lock("x"))
        lease.release()
        self.raises(holdfast.LockMismatch, self.client.semaphore("x", 2).try_acquire)
        (waiter.result()).release()
