"""Entering again: the same task or thread gets the same lease, and nobody else does (S27)."""

from __future__ import annotations

import pytest

import holdfast.aio as holdfast

from ...running import AsyncSpawned
from .base import AsyncBase


class AsyncReentrantTests(AsyncBase):
    """reentrant=True."""

    def lock(self, name: str = "x") -> holdfast.Lock:
        """Return a new description of the lock: re-entry goes by name, not by object."""
        return self.client.lock(name, reentrant=True)

    async def test_same_task_gets_the_same_lease(self) -> None:
        """Entering again gives the same lease and token, through whatever Lock object."""
        async with self.lock() as outer:
            async with self.lock() as inner:
                assert inner is outer
                assert await self.lock().try_acquire() is outer
                assert await outer.release() is False
            assert outer.held
        assert outer.released
        assert (await self.client.inspect("x")).kind is None

    async def test_only_the_last_exit_releases(self) -> None:
        """Inner exits, and inner releases, free nothing; the outermost does."""
        other = self.connect()
        rival = other.lock("x")
        lease = await self.take(self.lock())
        for _ in range(3):
            assert await self.take(self.lock()) is lease
        for _ in range(3):
            assert await lease.release() is False
            assert lease.held
            assert await rival.try_acquire() is None
        assert await lease.release() is True
        await (await self.take(rival)).release()

    async def test_inner_error_frees_nothing(self) -> None:
        """An error that leaves the inner `with` leaves the outer one held."""

        async def inner() -> None:
            async with self.lock():
                raise KeyError("inner")

        async with self.lock() as lease:
            await self.raises(KeyError, inner)
            assert lease.held
        assert lease.released

    async def test_another_task_is_kept_out(self) -> None:
        """Another task or thread of the same client waits, through the very same Lock object."""
        lock = self.lock()
        async with lock as lease:
            assert await AsyncSpawned(lock.try_acquire).result() is None
            waiter = await self.queue(self.client, lock)
            assert not waiter.done
        second = await waiter.result()
        assert second is not lease
        assert second.token > lease.token
        assert await second.release() is True

    async def test_another_client_is_kept_out(self) -> None:
        """Re-entry is a matter of one client: through another, the same task waits."""
        async with self.lock():
            other = self.connect()
            assert await other.lock("x", reentrant=True).try_acquire() is None

    async def test_finished_task_leaves_its_lease_to_nobody(self) -> None:
        """A task or thread that comes after the holder's has ended is not taken for it."""
        for _ in range(5):
            lease = await AsyncSpawned(self.take, self.lock()).result()
            assert await AsyncSpawned(self.lock().try_acquire).result() is None
            assert await lease.release() is True

    async def test_plain_lock_is_not_re_entered(self) -> None:
        """Without reentrant=True the same task waits for itself, and gives up."""
        async with self.client.lock("x"):
            assert await self.client.lock("x").try_acquire() is None

    async def test_reading_then_writing_is_refused(self) -> None:
        """Who reads and wants to write would wait for itself: it raises, and still reads."""
        rwlock = self.client.rwlock("x", reentrant=True)
        async with rwlock.read() as reader:
            error = await self.raises(holdfast.NotSupported, rwlock.write().acquire)
            assert error.name == "x"
            assert reader.held
            async with rwlock.read() as again:
                assert again is reader
        async with rwlock.write() as writer:
            async with rwlock.write() as inner:
                assert inner is writer

    async def test_nodes_of_a_tree_are_told_apart(self) -> None:
        """The same path is entered again; a path beside it is another lock."""
        one = self.client.tree("a/b", reentrant=True).write()
        two = self.client.tree("a/c", reentrant=True).write()
        async with one as lease, one as same, two as sibling:
            assert same is lease
            assert sibling is not lease

    async def test_entering_again_after_a_loss_is_refused_inside(self) -> None:
        """While the body of a lost lease still runs, entering again raises LeaseLost."""
        lock = self.client.lock("x", reentrant=True, ttl=self.ttl, cancel_on_loss=False)

        async def body() -> None:
            async with lock as lease:
                await self.client.force_release("x")
                await self.until_lost(lease)
                await self.raises(holdfast.LeaseLost, lock.acquire)

        await self.raises(holdfast.LeaseLost, body)

    @pytest.mark.parametrize("ending", ["force", "max_hold"])
    async def test_lock_can_be_taken_again_after_a_loss(self, ending: str) -> None:
        """Once a lost lease has been left, the same task takes the lock anew, with a new token."""
        hold = 0.05 if ending == "max_hold" else None
        lock = self.client.lock(
            "x", reentrant=True, ttl=self.ttl, cancel_on_loss=False, max_hold=hold
        )
        lost: list[holdfast.Lease] = []  # kept, as a variable after `with` keeps it

        async def body() -> None:
            async with lock as lease:
                lost.append(lease)
                if ending == "force":
                    await self.client.force_release("x")
                await self.until_lost(lease)

        await self.raises(holdfast.LeaseLost, body)
        fresh = await self.take(self.lock())
        assert fresh is not lost[0]
        assert fresh.token > lost[0].token
        assert await fresh.release() is True
