"""Loss in time on etcd: whoever is cut off knows that its leases are over before others have them.

Holders, waiters and the clock are in one process, so that what is compared is on one clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from secrets import token_hex

import pytest

from holdfast import aio
from holdfast.clocks import boot_clock
from holdfast.testing.etcd_harness import EtcdClusterHarness, EtcdHarness

CUTS = 5
LEASES = 20
TTL = 1.0
PATIENCE = 30.0


@pytest.fixture(scope="module")
def single() -> Iterator[EtcdHarness]:
    harness = EtcdHarness()
    harness.start()
    yield harness
    harness.stop()


@pytest.fixture(scope="module")
def cluster() -> Iterator[EtcdClusterHarness]:
    harness = EtcdClusterHarness()
    harness.start()
    yield harness
    harness.stop()


class Cut:
    """One cut: leases of one client, for each of which another one waits."""

    def __init__(self, holding: aio.Client, waiting: aio.Client) -> None:
        self._holding, self._waiting = holding, waiting
        self.overlaps: list[str] = []
        self.leases: list[aio.Lease] = []
        self.tokens: list[tuple[int, int]] = []

    async def prepare(self) -> None:
        """Hold all, and wait for all; a busy machine may need more than one go at it."""
        queued = asyncio.Semaphore(0)
        self._waiting.listen(
            lambda event: queued.release() if isinstance(event, aio.events.Waiting) else None
        )
        for attempt in range(5):
            self.leases = []
            for number in range(LEASES):
                lock = self._holding.lock(f"x{attempt}-{number}", ttl=TTL)
                lease = await lock.acquire(timeout=PATIENCE)
                assert lease is not None
                self.leases.append(lease)
            self._waiters = [asyncio.create_task(self._wait(lease)) for lease in self.leases]
            for _ in self.leases:
                await asyncio.wait_for(queued.acquire(), PATIENCE)
            if all(lease.held for lease in self.leases):
                return
            await asyncio.gather(*(lease.release() for lease in self.leases))
            await asyncio.gather(*self._waiters)
            self.overlaps, self.tokens = [], []
        raise AssertionError("the machine is too busy to hold leases at all")

    async def _wait(self, lease: aio.Lease) -> None:
        next_one = await self._waiting.lock(lease.name, ttl=10).acquire(timeout=PATIENCE)
        granted = boot_clock()
        assert next_one is not None
        # `held` is a look at the clock: it was true until the deadline, and never after.
        if lease.held or (lease.lost_reason is not None and lease._deadline > granted):
            self.overlaps.append(f"{lease.name}: {lease._deadline - granted:+.3f} s")
        self.tokens.append((lease.token, next_one.token))
        await next_one.release()

    async def finish(self) -> None:
        """Let all who wait have it, and compare."""
        await asyncio.gather(*self._waiters)
        assert self.overlaps == []
        assert all(old < new for old, new in self.tokens)
        assert len(self.tokens) == LEASES
        assert not any(lease.held for lease in self.leases)


def test_client_is_cut_off(single: EtcdHarness) -> None:
    """A client that reaches no server any more: 5 cuts, 20 leases each."""

    async def main() -> None:
        for _ in range(CUTS):
            name = f"test-{token_hex(6)}"
            async with (
                aio.connect(single.url, namespace=name) as holding,
                aio.connect(single.server.url, namespace=name) as waiting,
            ):
                cut = Cut(holding, waiting)
                await cut.prepare()
                single.cut()
                try:
                    await cut.finish()
                finally:
                    single.heal()

    asyncio.run(main())


def test_server_is_cut_off(cluster: EtcdClusterHarness) -> None:
    """A client whose only server is cut off from the rest, leader or not: 5 cuts, 20 leases each.

    The server still answers, its keep-alives too for a while (S12).
    """

    async def main() -> None:
        for number in range(CUTS):
            leader = cluster.cluster.leader()
            alone = leader if number % 2 == 0 else (leader + 1) % 3
            others = [one for one in range(3) if one != alone]
            name = f"test-{token_hex(6)}"
            ports = [cluster.servers[one].port for one in others]
            async with (
                aio.connect(cluster.servers[alone].url, namespace=name) as holding,
                aio.connect(
                    "etcd://" + ",".join(f"127.0.0.1:{port}" for port in ports), namespace=name
                ) as waiting,
            ):
                cut = Cut(holding, waiting)
                await cut.prepare()
                cluster.cluster.isolate(alone)
                try:
                    await cut.finish()
                finally:
                    cluster.cluster.heal()
                    cluster.cluster.until_healthy()

    asyncio.run(main())
