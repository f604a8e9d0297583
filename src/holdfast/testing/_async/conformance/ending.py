"""The end of a hold and of a client: release, close, and a lease that nobody kept (S30, S34)."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from typing import Any

import holdfast.aio as holdfast

from ...._concurrency import AsyncEvent, asleep
from ....model import Reason
from ...running import AsyncRunner, AsyncSpawned
from .base import AsyncBase
from .kinds import every_kind


class AsyncEndingTests(AsyncBase):
    """Letting go."""

    async def close_soon(self, client: holdfast.Client) -> None:
        """Close a client that has nothing to wait for: it must not use up the time it may take."""
        closing = AsyncSpawned(client.close, timeout=6 * self.harness.patience)
        await closing.result(self.harness.patience)

    @every_kind
    async def test_release_is_true_once(self, kind: str) -> None:
        """True: was ours and is free now. Then False, for ever, and harmless to the next holder."""
        lock = await self.mutex(kind, "x")
        first = await self.take(lock)
        assert await first.release() is True
        assert await first.release() is False
        second = await self.take(lock)
        assert await first.release() is False
        assert second.held
        assert await second.release() is True
        assert first.lost_reason is None

    async def test_release_by_many_is_true_for_one(self) -> None:
        """Several who release the same lease at once: exactly one is told that it was the one."""
        lease = await self.take(self.client.lock("x"))
        callers = [AsyncSpawned(lease.release) for _ in range(6)]
        answers = [await caller.result() for caller in callers]
        assert sorted(map(bool, answers)) == [False] * 5 + [True]
        assert lease.lost_reason is None
        assert (await self.client.inspect("x")).kind is None

    async def test_with_releases_whatever_the_body_does(self) -> None:
        """Leaving `with` frees the lock, after an error too, and the error goes on its way."""
        lock = self.client.lock("x")

        async def fail() -> None:
            async with lock:
                raise KeyError("the body's own")

        async with lock as lease:
            assert lease.held
        assert lease.released
        await self.raises(KeyError, fail)
        assert (await self.client.inspect("x")).kind is None

    async def test_close_releases_all(self) -> None:
        """Every lease of a closed client is lost as `closed`, and free for others at once."""
        client = self.connect()
        leases = [await self.take(client.lock(f"x/{number}")) for number in range(5)]
        await client.close()
        for lease in leases:
            assert not lease.held
            assert lease.lost.is_set()
            assert lease.lost_reason is Reason.CLOSED
        assert list(await self.client.locks()) == []

    async def test_close_inside_with(self) -> None:
        """A body whose client is closed learns of it on leaving."""
        client = self.connect()

        async def body() -> None:
            async with client.lock("x", cancel_on_loss=False):
                await client.close()

        error = await self.raises(holdfast.LeaseLost, body)
        assert error.reason is Reason.CLOSED

    async def test_close_wakes_who_waits(self) -> None:
        """Who waits in a client that is closed gets ClientClosed, and leaves the queue."""
        client = self.connect()
        lease = await self.take(self.client.lock("x"))
        waiters = [await self.queue(client, client.lock("x")) for _ in range(6)]
        await self.close_soon(client)
        for waiter in waiters:
            await self.raises(holdfast.ClientClosed, waiter.result)

        async def no_waiters() -> bool:
            return not (await self.client.inspect("x")).waiters

        await self.until(no_waiters)
        assert lease.held
        await lease.release()

    async def test_close_races_with_acquire(self) -> None:
        """Whoever is on the way in when the client is closed holds nothing afterwards."""
        client = self.connect()
        lock = client.semaphore("x", 3)

        async def insist() -> None:
            while True:
                lease = await self.take(lock)
                await asleep(0)  # an instant engine never gives way by itself
                await lease.release()

        callers = [AsyncSpawned(insist) for _ in range(6)]
        await asleep(0.05)
        await self.close_soon(client)
        for caller in callers:
            await self.raises(holdfast.ClientClosed, caller.result)
        assert (await self.client.inspect("x")).kind is None

    async def test_use_after_close_is_refused(self) -> None:
        """Every call on a closed client raises ClientClosed, names the engine, and does nothing."""
        client = self.connect()
        lock, election = client.lock("x"), client.election("x", "me")
        lease = await self.take(lock)
        await client.close()
        assert not lease.held

        @client.singleton("x")
        async def job() -> None: ...

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
            error = await self.raises(holdfast.ClientClosed, call)
            assert error.engine == client.engine.location
        await self.raises(holdfast.ClientClosed, client.inspect, "x")
        await self.raises(holdfast.ClientClosed, client.force_release, "x")
        assert list(await self.client.locks()) == []

    async def test_close_twice_is_harmless(self) -> None:
        """Closing again, or closing what was never used, does nothing."""
        await self.connect().close()
        client = self.connect()
        lease = await self.take(client.lock("x"))
        await client.close()
        await client.close(timeout=0)
        assert await lease.release() is False

    async def test_client_is_a_context_manager(self) -> None:
        """Leaving `with client` closes it."""
        async with self.connect() as client:
            lease = await self.take(client.lock("x"))
            assert lease.held
        assert lease.lost_reason is Reason.CLOSED
        assert (await self.client.inspect("x")).kind is None

    async def test_close_leaves_nothing_running(self) -> None:
        """After close no task or thread of the client is left."""
        before = AsyncRunner.background()
        client = self.connect()
        told = AsyncEvent()
        client.listen(lambda event: told.set())
        lease = await self.take(client.lock("x", ttl=self.ttl))
        assert await told.wait(self.harness.patience)
        assert not await lease.lost.wait(self.ttl / 2)  # a renewal has started the worker
        assert AsyncRunner.background() - before
        await client.close()

        async def all_gone() -> bool:
            return not AsyncRunner.background() - before

        await self.until(all_gone)

    async def test_dropped_lease_is_released_with_a_warning(self) -> None:
        """A lease that nobody kept is freed, and a ResourceWarning names the lock."""
        other = self.connect()
        heard = self.listen(self.client)
        lease: holdfast.Lease | None = await self.take(self.client.lock("forgotten", ttl=60))
        waiter = await self.queue(other, other.lock("forgotten"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lease = None
            gc.collect()
        assert lease is None
        told = [one for one in caught if issubclass(one.category, ResourceWarning)]
        assert any("'forgotten'" in str(one.message) for one in told), told
        second = await waiter.result()
        await heard.until(holdfast.events.Leaked)
        await second.release()

    async def test_dropped_lease_is_released_where_warnings_are_errors(self) -> None:
        """With `-W error` the warning cannot be raised from a collection; the release comes."""
        lease: holdfast.Lease | None = await self.take(self.client.lock("x", ttl=60))
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
        await self.until_idle("x")
        ignored.clear()

    async def test_kept_lease_gives_no_warning(self) -> None:
        """What was released, lost or closed in order is collected without a word."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            async with self.connect() as client:
                async with client.lock("a") as lease:
                    pass
                lease = await self.take(client.lock("b", ttl=self.ttl))
                await self.client.force_release("b")
                await self.until_lost(lease)
                lease = await self.take(client.lock("c"))
            del lease
            gc.collect()
