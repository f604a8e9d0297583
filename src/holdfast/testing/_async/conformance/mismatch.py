"""Another kind of lock, or another limit, under a name in use: refused, nothing changes (S2)."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast.aio as holdfast

from .base import AsyncBase

KINDS = ("lock", "read", "election", "semaphore-1", "semaphore-2", "semaphore-3", "tree")
SAME = ({"lock", "read", "election"},)

PAIRS = [
    (one, other)
    for one in KINDS
    for other in KINDS
    if one != other and not any({one, other} <= same for same in SAME)
]


class AsyncMismatchTests(AsyncBase):
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
    async def test_mismatch_is_refused(self, used: str, wanted: str) -> None:
        """Taking it raises LockMismatch at once, also for who would wait; holder and queue stay."""
        other = self.connect()
        lease = await self.take(self.make(self.client, used))
        before = await self.client.inspect("x")
        lock = self.make(other, wanted)
        for attempt in (lock.try_acquire, lock.acquire):
            error = await self.raises(holdfast.LockMismatch, attempt)
            assert isinstance(error, ValueError)
            assert "x" in str(error.name)
            assert "in use" in str(error)
        after = await self.client.inspect("x")
        assert [one.owner for one in after.holders] == [one.owner for one in before.holders]
        assert after.waiters == ()
        assert (after.kind, after.limit) == (before.kind, before.limit)
        assert lease.held
        assert await lock.locked()
        assert await lease.release() is True

    async def test_it_clears_when_idle(self) -> None:
        """Once nobody holds or waits, the name can be used for anything again, tokens rising."""
        tokens = []
        for kind in KINDS:
            lease = await self.take(self.make(self.client, kind))
            tokens.append(lease.token)
            await lease.release()
        assert tokens == sorted(set(tokens))

    async def test_it_clears_when_the_holder_is_dead(self) -> None:
        """A holder whose TTL is over no longer fixes the kind."""
        await self.die_holding(self.claim("x"))
        semaphore = self.client.semaphore("x", 2)

        async def free() -> bool:
            try:
                lease = await semaphore.try_acquire()
            except holdfast.LockMismatch:
                return False
            assert lease is not None
            return await lease.release() is True

        await self.until(free)

    async def test_waiters_fix_the_kind_too(self) -> None:
        """After the holder has gone to a waiter, another limit is still refused."""
        other = self.connect()
        lease = await self.take(self.client.lock("x"))
        waiter = await self.queue(other, other.lock("x"))
        await lease.release()
        await self.raises(holdfast.LockMismatch, self.client.semaphore("x", 2).try_acquire)
        await (await waiter.result()).release()
