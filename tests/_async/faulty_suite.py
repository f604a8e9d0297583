"""What tests with faulty engines stand on: a client on a link that fails, a bystander on one that
does not, and the table behind both."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import holdfast.aio as holdfast
from holdfast._async.engine import Haste
from holdfast._async.engines.memory import AsyncMemoryEngine
from holdfast._concurrency import asleep
from holdfast.lock_table import LockTable
from holdfast.model import Snapshot
from holdfast.testing import MemoryHarness
from holdfast.testing._async.conformance.recorder import AsyncRecorder
from holdfast.testing._async.faulty import AsyncFaulty
from holdfast.testing.collecting import collect
from holdfast.testing.faults import Rule
from holdfast.testing.running import AsyncRunner

TTL = 0.6  # short enough to wait for its end
PATIENCE = 10.0  # for what must happen
GIVE_UP = 0.3  # connect_timeout


class HastyEngine(AsyncMemoryEngine):
    """An engine that a test can let wish for early renewals."""

    haste: Haste

    def hastens(self, callback: Haste) -> None:
        """See AsyncEngine."""
        self.haste = callback


class AsyncFaultySuite:
    """A test and its two clients."""

    table: LockTable
    faulty: AsyncFaulty
    client: holdfast.Client
    other: holdfast.Client

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        collect(cls, MemoryHarness(), AsyncRunner.plain)

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test: this is what the runner calls."""
        self.table = LockTable()
        self.leases: list[holdfast.Lease] = []  # kept: a test may end with leases held
        self.faulty = AsyncFaulty(self._engine())
        self.client = holdfast.Client(self.faulty, ttl=TTL, connect_timeout=GIVE_UP)
        self.other = holdfast.Client(self._engine(), ttl=30)
        try:
            await test(self, **arguments)
        finally:
            self.faulty.follow(())
            self.faulty.unblock()
            await self.client.close()
            await self.other.close()

    def _engine(self) -> HastyEngine:
        return HastyEngine("memory://", max_ttl=300.0, state=self.table)

    def plan(self, *rules: Rule) -> None:
        """Let these things go wrong from now on."""
        self.faulty.follow(rules)

    def listen(self) -> AsyncRecorder:
        """Hear every event of the client from now on."""
        return AsyncRecorder(self.client, PATIENCE)

    async def take(self, name: str = "x", **options: Any) -> holdfast.Lease:
        """Acquire what must be had."""
        lease = await self.client.lock(name, **options).acquire(timeout=PATIENCE)
        assert lease is not None
        self.leases.append(lease)
        return lease

    async def block(self, name: str = "x", **options: Any) -> holdfast.Lease:
        """Let the bystander hold a lock."""
        lease = await self.other.lock(name, **options).try_acquire()
        assert lease is not None
        self.leases.append(lease)
        return lease

    def record(self, name: str = "x") -> Snapshot:
        """Show what is really in the table."""
        return self.table.inspect(f"holdfast/1/{name}")

    def holder(self, name: str = "x") -> tuple[str, int | None]:
        """Return owner and token of the one holder there must be."""
        (entry,) = self.record(name).holders
        return entry.owner, entry.token

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when the condition is true; it must become so."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            await asleep(0.002)

    async def until_free(self, name: str = "x") -> None:
        """Return when nobody holds or waits, well before any TTL could be over."""
        end = time.monotonic() + PATIENCE
        while self.record(name).kind is not None:
            assert time.monotonic() < end, f"still there: {self.record(name)}"
            await asleep(0.002)
