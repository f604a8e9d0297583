"""Readers share, a writer is alone, and no stream of readers keeps a writer waiting (S3)."""

from __future__ import annotations

import holdfast.aio as holdfast

from ...._concurrency import asleep
from ....model import Mode
from ...running import AsyncSpawned
from .base import AsyncBase

ROUNDS = 5


class AsyncReadWriteTests(AsyncBase):
    """rwlock, from two clients."""

    async def test_readers_share(self) -> None:
        """Readers of several clients hold at once, each with a token of its own."""
        readers = [await self.take(self.connect().rwlock("x").read()) for _ in range(3)]
        assert all(reader.held and reader.mode is Mode.SHARED for reader in readers)
        assert len({reader.token for reader in readers}) == 3
        assert len((await self.client.inspect("x")).holders) == 3
        for reader in readers:
            assert await reader.release() is True

    async def test_writer_excludes_and_is_excluded(self) -> None:
        """A writer keeps readers and writers out, and comes in only after the last reader."""
        other = self.connect()
        write, read = self.client.rwlock("x").write(), other.rwlock("x").read()
        writer = await self.take(write)
        assert writer.mode is Mode.EXCLUSIVE
        assert await read.try_acquire() is None
        assert await other.rwlock("x").write().try_acquire() is None
        await writer.release()
        one, two = await self.take(read), await self.take(read)
        assert await write.try_acquire() is None
        await one.release()
        assert await write.try_acquire() is None
        await two.release()
        await (await self.take(write)).release()

    async def test_plain_lock_is_a_writer(self) -> None:
        """lock(name) and rwlock(name) are one record: readers keep a plain lock out (S2)."""
        other = self.connect()
        reader = await self.take(self.client.rwlock("x").read())
        assert await other.lock("x").try_acquire() is None
        await reader.release()
        lease = await self.take(other.lock("x"))
        assert await self.client.rwlock("x").read().try_acquire() is None
        assert await self.client.rwlock("x").write().try_acquire() is None
        await lease.release()

    async def test_waiting_writer_is_not_starved(self) -> None:
        """A reader that comes after a waiting writer waits behind it, though readers hold."""
        if not self.promises("fair"):
            return
        other = self.connect()
        read, write = self.client.rwlock("x").read(), other.rwlock("x").write()
        first = await self.take(read)
        writer = await self.queue(other, write)
        assert await read.locked()
        assert await read.try_acquire() is None
        later = await self.queue(self.client, read)
        await first.release()
        writing = await writer.result()
        assert not later.done
        assert writing.held
        await writing.release()
        await (await later.result()).release()

    async def test_readers_behind_a_writer_enter_together(self) -> None:
        """When a writer leaves, all readers that waited behind it hold at once."""
        read = self.client.rwlock("x").read()
        writer = await self.take(self.connect().rwlock("x").write())
        waiters = [await self.queue(self.client, read) for _ in range(3)]
        await writer.release()
        readers = [await waiter.result() for waiter in waiters]
        assert all(reader.held for reader in readers)
        for reader in readers:
            await reader.release()

    async def test_writer_that_gives_up_lets_readers_pass(self) -> None:
        """Readers that waited behind a writer enter once it has withdrawn."""
        other = self.connect()
        read = self.client.rwlock("x").read()
        first = await self.take(read)
        heard = self.listen(other)
        impatient = AsyncSpawned(other.rwlock("x").write().acquire, timeout=4 * self.harness.brief)
        await heard.until(holdfast.events.Waiting)
        behind = AsyncSpawned(self.take, read)
        assert await impatient.result() is None
        second = await behind.result()
        assert first.held
        await first.release()
        await second.release()

    async def test_readers_never_see_half_a_write(self) -> None:
        """Two values that are written one after the other always read the same."""
        left = right = 0

        async def write(client: holdfast.Client) -> None:
            nonlocal left, right
            for _ in range(ROUNDS):
                async with client.rwlock("x", timeout=self.harness.patience).write():
                    left += 1
                    await asleep(0)
                    right += 1

        async def read(client: holdfast.Client) -> None:
            for _ in range(ROUNDS):
                async with client.rwlock("x", timeout=self.harness.patience).read():
                    seen = left
                    await asleep(0)
                    assert seen == right

        clients = [self.connect(), self.connect()]
        callers = [AsyncSpawned(call, client) for client in clients for call in (write, read, read)]
        for caller in callers:
            await caller.result()
        assert left == right == len(clients) * ROUNDS
