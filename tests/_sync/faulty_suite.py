"""(Generated from _async/faulty_suite.py by tools/unasync.py: do not edit.) What tests with faulty engines stand on: a client on a link that fails, a bystander on one that
does not, and the table behind both."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import holdfast
from holdfast._sync.engine import Haste
from holdfast._sync.engines.memory import MemoryEngine
from holdfast._concurrency import sleep
from holdfast.lock_table import LockTable
from holdfast.model import Snapshot
from holdfast.testing import MemoryHarness
from holdfast.testing._sync.conformance.recorder import Recorder
from holdfast.testing._sync.faulty import Faulty
from holdfast.testing.collecting import collect
from holdfast.testing.faults import Rule
from holdfast.testing.running import Runner

TTL = 0.6  # short enough to wait for its end
PATIENCE = 10.0  # for what must happen
GIVE_UP = 0.3  # connect_timeout


class HastyEngine(MemoryEngine):
    """An engine that a test can let wish for early renewals."""

    haste: Haste

    def hastens(self, callback: Haste) -> None:
        """See Engine."""
        self.haste = callback


class FaultySuite:
    """A test and its two clients."""

    table: LockTable
    faulty: Faulty
    client: holdfast.Client
    other: holdfast.Client

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        collect(cls, MemoryHarness(), Runner.plain)

    def conduct(self, test: Callable[..., None], **arguments: Any) -> None:
        """Run one test: this is what the runner calls."""
        self.table = LockTable()
        self.leases: list[holdfast.Lease] = []  # kept: a test may end with leases held
        self.faulty = Faulty(self._engine())
        self.client = holdfast.Client(self.faulty, ttl=TTL, connect_timeout=GIVE_UP)
        self.other = holdfast.Client(self._engine(), ttl=30)
        try:
            test(self, **arguments)
        finally:
            self.faulty.follow(())
            self.faulty.unblock()
            self.client.close()
            self.other.close()

    def _engine(self) -> HastyEngine:
        return HastyEngine("memory://", max_ttl=300.0, state=self.table)

    def plan(self, *rules: Rule) -> None:
        """Let these things go wrong from now on."""
        self.faulty.follow(rules)

    def listen(self) -> Recorder:
        """Hear every event of the client from now on."""
        return Recorder(self.client, PATIENCE)

    def take(self, name: str = "x", **options: Any) -> holdfast.Lease:
        """Acquire what must be had."""
        lease = self.client.lock(name, **options).acquire(timeout=PATIENCE)
        assert lease is not None
        self.leases.append(lease)
        return lease

    def block(self, name: str = "x", **options: Any) -> holdfast.Lease:
        """Let the bystander hold a lock."""
        lease = self.other.lock(name, **options).try_acquire()
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

    def until(self, condition: Callable[[], bool]) -> None:
        """Return when the condition is true; it must become so."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            sleep(0.002)

    def until_free(self, name: str = "x") -> None:
        """Return when nobody holds or waits, well before any TTL could be over."""
        end = time.monotonic() + PATIENCE
        while self.record(name).kind is not None:
            assert time.monotonic() < end, f"still there: {self.record(name)}"
            sleep(0.002)
