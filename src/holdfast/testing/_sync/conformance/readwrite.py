"""(Generated from _async/conformance/readwrite.py by tools/unasync.py: do not edit.) Readers share, a writer is alone, and no stream of readers keeps a writer waiting (S3)."""

from __future__ import annotations

import holdfast

from ...._concurrency import sleep
from ....model import Mode
from ...running import Spawned
from .base import Base

ROUNDS = 5


class ReadWriteTests(Base):
    """rwlock, from two clients."""

    def test_readers_share(self) -> None:
        """Readers of several clients hold at once, each with a token of its own."""
        readers = [self.take(self.connect().rwlock("x").read()) for _ in range(3)]
        assert all(reader.held and reader.mode is Mode.SHARED for reader in readers)
        assert len({reader.token for reader in readers}) == 3
        assert len((self.client.inspect("x")).holders) == 3
        for reader in readers:
            assert reader.release() is True

    def test_writer_excludes_and_is_excluded(self) -> None:
        """A writer keeps readers and writers out, and comes in only after the last reader."""
        other = self.connect()
        write, read = self.client.rwlock("x").write(), other.rwlock("x").read()
        writer = self.take(write)
        assert writer.mode is Mode.EXCLUSIVE
        assert read.try_acquire() is None
        assert other.rwlock("x").write().try_acquire() is None
        writer.release()
        one, two = self.take(read), self.take(read)
        assert write.try_acquire() is None
        one.release()
        assert write.try_acquire() is None
        two.release()
        (self.take(write)).release()

    def test_plain_lock_is_a_writer(self) -> None:
        """lock(name) and rwlock(name) are one record: readers keep a plain lock out (S2)."""
        other = self.connect()
        reader = self.take(self.client.rwlock("x").read())
        assert other.lock("x").try_acquire() is None
        reader.release()
        lease = self.take(other.lock("x"))
        assert self.client.rwlock("x").read().try_acquire() is None
        assert self.client.rwlock("x").write().try_acquire() is None
        lease.release()

    def test_waiting_writer_is_not_starved(self) -> None:
        """A reader that comes after a waiting writer waits behind it, though readers hold."""
        if not self.promises("fair"):
            return
        other = self.connect()
        read, write = self.client.rwlock("x").read(), other.rwlock("x").write()
        first = self.take(read)
        writer = self.queue(other, write)
        assert read.locked()
        assert read.try_acquire() is None
        later = self.queue(self.client, read)
        first.release()
        writing = writer.result()
        assert not later.done
        assert writing.held
        writing.release()
        (later.result()).release()

    def test_readers_behind_a_writer_enter_together(self) -> None:
        """When a writer leaves, all readers that waited behind it hold at once."""
        read = self.client.rwlock("x").read()
        writer = self.take(self.connect().rwlock("x").write())
        waiters = [self.queue(self.client, read) for _ in range(3)]
        writer.release()
        readers = [waiter.result() for waiter in waiters]
        assert all(reader.held for reader in readers)
        for reader in readers:
            reader.release()

    def test_writer_that_gives_up_lets_readers_pass(self) -> None:
        """Readers that waited behind a writer enter once it has withdrawn."""
        other = self.connect()
        read = self.client.rwlock("x").read()
        first = self.take(read)
        heard = self.listen(other)
        impatient = Spawned(other.rwlock("x").write().acquire, timeout=4 * self.harness.brief)
        heard.until(holdfast.events.Waiting)
        behind = Spawned(self.take, read)
        assert impatient.result() is None
        second = behind.result()
        assert first.held
        first.release()
        second.release()

    def test_readers_never_see_half_a_write(self) -> None:
        """Two values that are written one after the other always read the same."""
        left = right = 0

        def write(client: holdfast.Client) -> None:
            nonlocal left, right
            for _ in range(ROUNDS):
                with client.rwlock("x", timeout=self.harness.patience).write():
                    left += 1
                    sleep(0)
                    right += 1

        def read(client: holdfast.Client) -> None:
            for _ in range(ROUNDS):
                with client.rwlock("x", timeout=self.harness.patience).read():
                    seen = left
                    sleep(0)
                    assert seen == right

        clients = [self.connect(), self.connect()]
        callers = [Spawned(call, client) for client in clients for call in (write, read, read)]
        for caller in callers:
            caller.result()
        assert left == right == len(clients) * ROUNDS
