"""Loss in time on three ZooKeeper servers: `held` is false before the next grant, on one clock.

Five cuts, twenty leases each, for both ways in which a holder can be cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from holdfast import aio
from holdfast.clocks import boot_clock
from holdfast.testing.zookeeper_harness import ZooKeeperEnsembleHarness

CUTS = 5
LEASES = 20
TTL = 1.5
PATIENCE = 60.0  # seconds; an election on a slow machine


@pytest.fixture(scope="module")
def harness() -> Iterator[ZooKeeperEnsembleHarness]:
    """Three servers whose links can be cut, each behind a proxy."""
    found = ZooKeeperEnsembleHarness(links=True, options={"syncLimit": 8, "initLimit": 8})
    found.start()
    yield found
    found.stop()


def cut_client_off(harness: ZooKeeperEnsembleHarness, number: int) -> None:
    """Let nothing pass between the holder and its server."""
    harness.parts()[number].cut()


def cut_server_off(harness: ZooKeeperEnsembleHarness, number: int) -> None:
    """Let nothing pass between the holder's server and the others."""
    harness.ensemble.isolate(number)


async def watched(client: aio.Client, name: str) -> tuple[aio.Lease, float]:
    """Take a lock, and return when that was."""
    lease = await client.lock(name, ttl=TTL).acquire(timeout=PATIENCE)
    assert lease is not None
    return lease, boot_clock()


async def all_queued(client: aio.Client) -> None:
    """Return when somebody waits for each of the locks."""
    end = boot_clock() + PATIENCE
    while sum(bool(shot.waiters) for shot in await client.locks("x/")) < LEASES:
        assert boot_clock() < end, "they never waited"


async def one_cut(
    harness: ZooKeeperEnsembleHarness,
    cut: Callable[[ZooKeeperEnsembleHarness, int], None],
    number: int,
) -> list[float]:
    """Cut a holder of many leases off; return how long each had ended before the next began."""
    parts = harness.parts()
    near = f"zookeeper://127.0.0.1:{parts[number].proxy.port}"
    rest = [part for n, part in enumerate(parts) if n != number]
    far = "zookeeper://" + ",".join(f"127.0.0.1:{part.server.port}" for part in rest)
    names = [f"x/{n}" for n in range(LEASES)]
    async with aio.connect(near) as holder, aio.connect(far, connect_timeout=PATIENCE) as other:
        held = [(await watched(holder, name))[0] for name in names]
        last_seen = [0.0] * LEASES  # when each was last found to be held
        waiters = [asyncio.create_task(watched(other, name)) for name in names]
        await all_queued(other)
        cut(harness, number)
        while not all(waiter.done() for waiter in waiters):
            for n, lease in enumerate(held):
                now = boot_clock()
                if lease.held:
                    last_seen[n] = now
            await asyncio.sleep(0.002)
        margins = []
        for n, waiter in enumerate(waiters):
            lease, granted = waiter.result()
            assert not held[n].held
            assert lease.token > held[n].token
            margins.append(granted - last_seen[n])
            await lease.release()
        harness.heal()
        harness.ensemble.heal()
    return margins


@pytest.mark.parametrize("cut", [cut_client_off, cut_server_off])
def test_held_is_false_before_the_next_grant(
    harness: ZooKeeperEnsembleHarness, cut: Callable[[ZooKeeperEnsembleHarness, int], None]
) -> None:
    """Every time, whether the client is cut off, or its server from the rest."""
    margins: list[float] = []
    for turn in range(CUTS):
        harness.ensemble.until_agreed()
        followers, leader = harness.ensemble.followers(), harness.ensemble.leader()
        number = leader if turn == CUTS - 1 else followers[turn % 2]
        margins += asyncio.run(one_cut(harness, cut, number))
    assert len(margins) == CUTS * LEASES
    assert min(margins) > 0, sorted(margins)[:5]
