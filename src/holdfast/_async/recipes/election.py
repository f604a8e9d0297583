"""Leader election: an exclusive lock whose holder announces a value."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ..._concurrency import AsyncBell
from ...errors import LeaseLost
from ...model import Leader, Seconds
from ..lease import AsyncLease
from .lock import AsyncLock

if TYPE_CHECKING:
    from ..runtime import AsyncRuntime

R = TypeVar("R")

LOOK_EVERY = 1.0  # where the engine does not push changes


class AsyncElection:
    """One leader at a time among those who campaign under a name.

    The leader's writes must carry `lease.token`: a paused leader learns late that it no longer is.
    """

    def __init__(self, runtime: AsyncRuntime, lock: AsyncLock) -> None:
        self._runtime = runtime
        self._lock = lock

    @property
    def name(self) -> str:
        """The election's name."""
        return self._lock.name

    async def campaign(self, timeout: Seconds | None = None) -> AsyncLease | None:
        """Wait to become the leader; the lease is the leadership, releasing it resigns.

        None if another still leads after `timeout` seconds.
        """
        return await self._lock.acquire(timeout=timeout)

    async def leader(self) -> Leader | None:
        """Return who leads now, as the engine sees it."""
        shot = await self._lock._snapshot()
        if not shot.holders:
            return None
        first = shot.holders[0]
        return Leader(first.value, first.token or 0, first.owner)

    async def observe(self) -> AsyncIterator[Leader | None]:
        """Yield the leader now and after every change; a quick change in between may be missed."""
        self._runtime.ready()
        bell = AsyncBell()
        stop = self._runtime.engine.watch(self._lock._terms.key, bell.ring)
        seen: Leader | None = None
        first = True
        try:
            while True:
                leader = await self.leader()
                if first or leader != seen:
                    first, seen = False, leader
                    yield leader
                await bell.wait(LOOK_EVERY)
        finally:
            if stop is not None:
                stop()

    async def run(self, work: Callable[[AsyncLease], Awaitable[R]]) -> R:
        """Lead whenever possible: campaign, run `work(lease)`, and again when the lease is lost.

        Returns what `work` returns, after resigning; an error of `work` resigns and is raised.
        Async: a lost lease cancels `work`. Sync: `work` must look at `lease.lost` or call
        `lease.ensure_held()` and return.
        """
        while True:
            lease = await self._lock.acquire(timeout=-1)
            assert lease is not None
            try:
                async with lease:
                    result = await work(lease)
                return result
            except LeaseLost as lost:
                if lost.token != lease.token:
                    raise  # not about this leadership

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"
