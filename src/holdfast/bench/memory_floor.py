"""memory:// beside a hand-written lock table: pairs, renewal, what 10,000 leases cost."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from functools import partial
from heapq import heappop, heappush

from .. import aio, connect
from ..clocks import boot_clock
from .floor import Row, Step
from .timing import alternate, ratio

PAIRS = 2_000
LEASES = 10_000
TTL = 30.0
URL = "memory://bench"
AIM = 3.0


class HandLease:
    """The least that can be called a lease."""

    __slots__ = ("deadline", "key", "owner", "table", "token")

    def __init__(self, table: HandTable, key: str, owner: str, token: int, deadline: float) -> None:
        self.table = table
        self.key = key
        self.owner = owner
        self.token = token
        self.deadline = deadline

    def release(self) -> bool:
        with self.table.mutex:
            if self.table.holders.get(self.key) != self.owner:
                return False
            del self.table.holders[self.key]
            return True


class HandTable:
    """A lock table by hand: mutex, 16 random bytes, token, heap entry, lease object; no more."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.holders: dict[str, str] = {}
        self.heap: list[tuple[float, str]] = []
        self.floor = 0

    def acquire(self, key: str) -> HandLease | None:
        owner = os.urandom(16).hex()
        now = boot_clock()
        with self.mutex:
            if key in self.holders:
                return None
            self.holders[key] = owner
            self.floor = max(self.floor + 1, time.time_ns() // 1000)
            deadline = now + TTL * 0.99 - 0.002
            heappush(self.heap, (deadline, owner))
            while len(self.heap) > 64:
                heappop(self.heap)
            return HandLease(self, key, owner, self.floor, deadline)


class AsyncHandTable(HandTable):
    """The same for `await`."""

    async def aacquire(self, key: str) -> HandLease | None:
        return self.acquire(key)

    async def arelease(self, lease: HandLease) -> bool:
        return lease.release()


def sync_pair(rounds: int) -> list[Row]:
    """An uncontended acquire and release, blocking."""
    table = HandTable()
    with connect(URL) as client:
        lock = client.lock("pair", ttl=TTL)

        def hand() -> None:
            for _ in range(PAIRS):
                lease = table.acquire("pair")
                assert lease is not None
                lease.release()

        def ours() -> None:
            for _ in range(PAIRS):
                lease = lock.acquire()
                assert lease is not None
                lease.release()

        floor, times = alternate(rounds, PAIRS, hand, ours)
    return [ratio("pair, sync / hand-written", floor, times, AIM)]


def async_pair(rounds: int) -> list[Row]:
    """An uncontended acquire and release, awaited."""

    async def main() -> list[Row]:
        table = AsyncHandTable()
        floor: list[float] = []
        times: list[float] = []
        async with aio.connect(URL) as client:
            lock = client.lock("apair", ttl=TTL)
            for _ in range(rounds):
                started = time.perf_counter()
                for _ in range(PAIRS):
                    hand_lease = await table.aacquire("apair")
                    assert hand_lease is not None
                    await table.arelease(hand_lease)
                middle = time.perf_counter()
                for _ in range(PAIRS):
                    lease = await lock.acquire()
                    assert lease is not None
                    await lease.release()
                end = time.perf_counter()
                floor.append((middle - started) / PAIRS * 1e6)
                times.append((end - middle) / PAIRS * 1e6)
        return [ratio("pair, async / hand-written", floor, times, AIM)]

    return asyncio.run(main())


def held_leases(watch: float) -> list[Row]:
    """CPU that renewing 10,000 leases costs, and the threads it takes."""
    with connect(URL) as client:
        leases = [client.lock(f"held/{number}", ttl=TTL).acquire() for number in range(LEASES)]
        before, started = time.process_time(), time.monotonic()
        time.sleep(watch)
        busy, passed = time.process_time() - before, time.monotonic() - started
        threads = sum(one.name.startswith("holdfast") for one in threading.enumerate())
        kept = sum(lease is not None and lease.held for lease in leases)
    return [
        Row(
            f"CPU for renewing {LEASES:,} leases at ttl={TTL:g} s",
            busy / passed * 100,
            " % of a core",
            5.0,
            f"over {passed:.0f} s; {kept:,} still held; {threads} threads of ours",
        )
    ]


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    rounds = 15 if quick else 101
    return [
        partial(sync_pair, rounds),
        partial(async_pair, rounds),
        partial(held_leases, 12.0 if quick else 30.0),
    ]
