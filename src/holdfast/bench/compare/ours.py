"""Our lock as a contestant: blocking, and awaitable."""

from __future__ import annotations

from ... import Lease, Lock, aio, connect
from ..async_contestant import AsyncContestant, AsyncHandle
from ..contestant import OURS, Contestant
from ..handle import PATIENCE, Handle, NotHeld


class _Held:
    """A lock and the lease that one thread has of it."""

    __slots__ = ("_lease", "_lock")
    _lease: Lease | None

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def acquire(self) -> None:
        self._lease = lease = self._lock.acquire()
        if lease is None:
            raise NotHeld

    def release(self) -> None:
        assert self._lease is not None
        self._lease.release()
        self._lease = None


class Ours(Contestant):
    """holdfast, one client for a process."""

    name = "holdfast"
    role = OURS
    package = "holdfast"

    def open(self) -> None:
        """Connect."""
        self.client = self.stack.enter_context(connect(self.place.url, timeout=PATIENCE))

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        return self._handle(self.client.lock(key, ttl=self.ttl))

    def modes(self, key: str) -> tuple[Handle, Handle]:
        """See Contestant."""
        both = self.client.rwlock(key, ttl=self.ttl)
        return self._handle(both.read()), self._handle(both.write())

    def _handle(self, lock: Lock) -> Handle:
        held = _Held(lock)
        return Handle(held.acquire, held.release)


class AsyncOurs(AsyncContestant):
    """The same, to be awaited: one client for all tasks."""

    name = Ours.name
    role = OURS
    package = Ours.package

    async def open(self) -> None:
        """Connect."""
        made = aio.connect(self.place.url, timeout=PATIENCE)
        self.client = await self.stack.enter_async_context(made)

    async def lock(self, key: str) -> AsyncHandle:
        """See AsyncContestant."""
        lock = self.client.lock(key, ttl=self.ttl)
        held: list[aio.Lease] = []

        async def acquire() -> None:
            lease = await lock.acquire()
            if lease is None:
                raise NotHeld
            held.append(lease)

        async def release() -> None:
            await held.pop().release()

        return AsyncHandle(acquire, release)
