"""How long to wait: every way to say it, and what comes of it (S7)."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

import holdfast.aio as holdfast

from ....model import Seconds
from ...running import elapsed
from .base import AsyncBase

a_while = pytest.mark.parametrize("unit", [1.0, timedelta(seconds=1)])
at_once = pytest.mark.parametrize("timeout", [0, 0.0, timedelta(0)])
nonsense = pytest.mark.parametrize(
    "timeout", [-2, -0.5, float("nan"), float("inf"), timedelta(seconds=-3), "5", True, [5]]
)


class AsyncWaitingTests(AsyncBase):
    """Time-outs of a call, of a lock and of a client."""

    async def _busy(self, name: str = "x") -> holdfast.Lease:
        """Let somebody hold the lock, under a label that errors can name."""
        return await self.take(self.connect().lock(name, label="somebody else"))

    @at_once
    async def test_zero_never_waits(self, timeout: Seconds) -> None:
        """With 0 the answer comes at once, and nobody was ever queued."""
        lease = await self._busy()
        heard = self.listen(self.client)
        assert await self.client.lock("x").acquire(timeout=timeout) is None
        assert await self.client.lock("x", timeout=timeout).acquire() is None
        missed = await heard.until(holdfast.events.Missed, 2)
        assert [event.result for event in missed] == ["busy", "busy"]
        assert "Waiting" not in heard.kinds()
        await lease.release()

    @a_while
    async def test_a_call_waits_as_told(self, unit: Any) -> None:
        """A fraction of a second is waited out in full, as a number or as a timedelta."""
        lease = await self._busy()
        started = time.monotonic()
        timeout = self.harness.brief * unit
        assert await self.client.lock("x").acquire(timeout=timeout) is None
        assert elapsed(started) >= self.harness.brief
        await lease.release()

    @a_while
    async def test_none_means_the_lock_s_own(self, unit: Any) -> None:
        """Without a time-out of the call, that of the lock counts."""
        lease = await self._busy()
        started = time.monotonic()
        timeout = self.harness.brief * unit
        assert await self.client.lock("x", timeout=timeout).acquire() is None
        assert elapsed(started) >= self.harness.brief
        await lease.release()

    @a_while
    async def test_none_means_then_the_client_s(self, unit: Any) -> None:
        """Without one of the lock either, that of the client counts, for every kind of lock."""
        client = self.connect(timeout=self.harness.brief * unit)
        lease = await self._busy()
        reader = await self.take(self.connect().rwlock("r").read())
        started = time.monotonic()
        assert await client.lock("x").acquire() is None
        assert await client.rwlock("r").write().acquire() is None
        assert await client.election("x").campaign() is None
        assert elapsed(started) >= 3 * self.harness.brief
        await lease.release()
        await reader.release()

    async def test_none_at_last_means_for_ever(self) -> None:
        """With no time-out anywhere, the wait ends with the lock."""
        lease = await self._busy()
        waiter = await self.queue(self.client, _Bare(self.client.lock("x")))
        await lease.release()
        await (await waiter.result()).release()

    async def test_minus_one_is_for_ever(self) -> None:
        """-1 overrides the shorter time-out of the lock, and of the client."""
        client = self.connect(timeout=0)
        lease = await self._busy()
        by_call = await self.queue(client, client.lock("x", timeout=0), timeout=-1)
        by_lock = await self.queue(client, _Bare(client.lock("x", timeout=-1)))
        await lease.release()
        await (await by_call.result()).release()
        await (await by_lock.result()).release()

    async def test_blocking_false_never_waits(self) -> None:
        """blocking=False is try_acquire, whatever the lock's own time-out."""
        lease = await self._busy()
        assert await self.client.lock("x", timeout=60).acquire(blocking=False) is None
        assert await self.client.lock("x", timeout=60).try_acquire() is None
        await lease.release()
        second = await self.client.lock("x").acquire(blocking=False)
        assert second is not None
        await second.release()

    async def test_blocking_false_takes_no_timeout(self) -> None:
        """Not to wait, and for how long, is a contradiction: ValueError, as in threading."""
        lock = self.client.lock("x")
        with pytest.raises(ValueError, match="blocking"):
            await lock.acquire(blocking=False, timeout=1)
        assert (await self.client.inspect("x")).kind is None

    @nonsense
    async def test_nonsense_is_refused(self, timeout: Any) -> None:
        """What is no time to wait raises one sentence, and nothing is taken or queued."""
        for attempt in (
            lambda: self.client.lock("x", timeout=timeout),
            lambda: self.connect(timeout=timeout),
        ):
            with pytest.raises((ValueError, TypeError), match="timeout must be"):
                attempt()
        with pytest.raises((ValueError, TypeError), match="timeout must be"):
            await self.client.lock("x").acquire(timeout=timeout)
        assert (await self.client.inspect("x")).kind is None

    async def test_with_says_who_is_in_the_way(self) -> None:
        """`with` raises NotAcquired, a TimeoutError that names lock, engine and holder."""
        lease = await self._busy()

        async def enter() -> None:
            async with self.client.lock("x", timeout=self.harness.brief):
                pytest.fail("entered a lock that another holds")

        error = await self.raises(holdfast.NotAcquired, enter)
        assert isinstance(error, TimeoutError)
        assert error.name == "x"
        assert error.engine == self.client.engine.location
        for detail in ("'x'", self.client.engine.location, "somebody else", str(lease.token)):
            assert detail in str(error)
        await lease.release()

    @pytest.mark.parametrize("kind", ["read", "semaphore", "tree", "group", "decorated"])
    async def test_every_with_raises(self, kind: str) -> None:
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

        async def enter() -> None:
            async with wanted:
                pytest.fail("entered a lock that another holds")

        lease = await self.take(busy)
        error = await self.raises(holdfast.NotAcquired, wanted(enter) if "dec" in kind else enter)
        assert "x" in str(error.name)
        assert str(lease.token) in str(error)
        assert [shot.name for shot in await self.client.locks()] == ["x"]
        assert await lease.release() is True

    async def test_locked_says_whether_trying_would_fail(self) -> None:
        """locked() follows the holder, and judges by the kind of lock that asks."""
        lock, rwlock = self.client.lock("x"), self.client.rwlock("x")
        assert not await lock.locked()
        reader = await self.take(rwlock.read())
        assert await lock.locked()
        assert not await rwlock.read().locked()
        await reader.release()
        assert not await lock.locked()
        permit = await self.take(self.client.semaphore("s", 2))
        assert not await self.client.semaphore("s", 2).locked()
        assert await self.client.semaphore("s", 3).locked(), "another limit would be refused"
        await permit.release()


class _Bare:
    """A lock that is always acquired without a word about time."""

    def __init__(self, lock: holdfast.Lock) -> None:
        self._lock = lock

    async def acquire(
        self, blocking: bool = True, timeout: Seconds | None = None
    ) -> holdfast.Lease | None:
        return await self._lock.acquire()

    async def try_acquire(self) -> holdfast.Lease | None:
        return await self._lock.try_acquire()
