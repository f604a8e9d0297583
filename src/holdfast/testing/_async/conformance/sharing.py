"""One Lock object in many hands: each task or thread leaves what it entered (S27)."""

from __future__ import annotations

import holdfast.aio as holdfast

from ...._concurrency import AsyncEvent, asleep
from ...running import AsyncSpawned
from .base import AsyncBase

WORKERS = 6
ROUNDS = 5


class AsyncSharingTests(AsyncBase):
    """`with lock` on a shared description."""

    async def test_many_enter_the_same_object(self) -> None:
        """Tasks or threads that share one Lock exclude each other and each leaves its own."""
        lock = self.client.lock("x", timeout=self.harness.patience)
        counter = 0
        tokens: list[int] = []

        async def work() -> None:
            nonlocal counter
            for _ in range(ROUNDS):
                async with lock as lease:
                    seen = counter
                    await asleep(0)
                    assert lease.held
                    counter = seen + 1
                    tokens.append(lease.token)

        workers = [AsyncSpawned(work) for _ in range(WORKERS)]
        for worker in workers:
            await worker.result()
        assert counter == WORKERS * ROUNDS
        assert tokens == sorted(set(tokens))
        assert (await self.client.inspect("x")).kind is None

    async def test_holders_of_one_object_leave_their_own(self) -> None:
        """Several inside at once, through one semaphore object: each exit frees its own permit."""
        lock = self.client.semaphore("x", 3)
        leave = [AsyncEvent() for _ in range(3)]
        inside = [AsyncEvent() for _ in range(3)]
        leases: dict[int, holdfast.Lease] = {}

        async def stay(number: int) -> None:
            async with lock as lease:
                leases[number] = lease
                inside[number].set()
                assert await leave[number].wait(self.harness.patience)

        stays = [AsyncSpawned(stay, number) for number in range(3)]
        for event in inside:
            assert await event.wait(self.harness.patience)
        for number in (1, 0, 2):
            leave[number].set()
            await stays[number].result()
            assert leases[number].released
            assert sum(lease.held for lease in leases.values()) == 2 - [1, 0, 2].index(number)

    async def test_nested_in_one_task(self) -> None:
        """One task may be inside a semaphore twice through one object; exits go inside out."""
        lock = self.client.semaphore("x", 2)
        async with lock as outer:
            async with lock as inner:
                assert inner is not outer
            assert inner.released
            assert outer.held
        assert outer.released

    async def test_foreign_exit_takes_the_only_entry(self) -> None:
        """A task or thread that did not enter may leave, if exactly one entry is open."""
        lock = self.client.lock("x")
        lease = await AsyncSpawned(lock.__aenter__).result()
        assert lease.held
        await lock.__aexit__(None, None, None)
        assert lease.released
        assert (await self.client.inspect("x")).kind is None

    async def test_foreign_exit_from_many_is_refused(self) -> None:
        """With several entries open it is unclear which: the error says what to use instead."""
        lock = self.client.semaphore("x", 2)
        entered, leave = AsyncEvent(), AsyncEvent()

        async def stay() -> None:
            async with lock:
                async with lock:
                    entered.set()
                    assert await leave.wait(self.harness.patience)

        staying = AsyncSpawned(stay)
        assert await entered.wait(self.harness.patience)
        error = await self.raises(holdfast.LockError, lock.__aexit__, None, None, None)
        assert "lock.acquire() as lease" in str(error)
        assert len((await self.client.inspect("x")).holders) == 2, "nothing was freed"
        leave.set()
        await staying.result()

    async def test_exit_without_entry_is_refused(self) -> None:
        """Leaving what nobody entered is an error, not a release."""
        lock = self.client.lock("x")
        lease = await self.take(lock)
        await self.raises(holdfast.LockError, lock.__aexit__, None, None, None)
        assert lease.held
        await lease.release()

    async def test_lease_may_be_left_by_another(self) -> None:
        """`with lock.acquire() as lease`: the lease itself may be handed to whoever leaves it."""
        lease = await AsyncSpawned(self.take, self.client.lock("x")).result()
        async with lease as same:
            assert same is lease
        assert lease.released
