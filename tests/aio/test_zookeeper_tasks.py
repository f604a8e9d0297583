"""ZooKeeper under asyncio: cancelled tasks leave nothing behind, a thousand share one session."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from secrets import token_hex

import pytest

from holdfast import aio
from holdfast.testing.zookeeper_harness import SharedZooKeeperHarness

TTL = 30.0
PATIENCE = 60.0
CANCELS = 60
TASKS = 1000
TURNS = 30


@pytest.fixture(scope="module")
def harness() -> Iterator[SharedZooKeeperHarness]:
    """One server for all tests here."""
    found = SharedZooKeeperHarness()
    found.start()
    yield found
    found.stop()


async def until_idle(client: aio.Client) -> None:
    """Return when nobody holds or waits for anything."""
    end = time.monotonic() + PATIENCE
    while await client.locks():
        assert time.monotonic() < end, await client.locks()


def test_cancelled_tasks_leave_nothing(harness: SharedZooKeeperHarness) -> None:
    """Tasks that are cancelled at any moment of taking, waiting or giving back: no node stays."""
    dice = random.Random(7)

    async def main() -> None:
        async with aio.connect(harness.url, namespace=token_hex(4), ttl=TTL) as client:
            await client.ping()

            async def once(name: str) -> None:
                async with client.lock(name):
                    await asyncio.sleep(0.002)

            for _ in range(CANCELS):
                tasks = [asyncio.create_task(once(name)) for name in ("a", "a", "b")]
                for task in tasks:
                    await asyncio.sleep(dice.uniform(0.0, 0.01))
                    task.cancel()
                for task in tasks:
                    with suppress(asyncio.CancelledError):
                        await task
            await until_idle(client)
            async with client.lock("a", timeout=PATIENCE) as lease:
                assert lease.held

    asyncio.run(main())


def test_1000_tasks_wait_in_one_session(harness: SharedZooKeeperHarness) -> None:
    """A thousand tasks queue for one lock with one connection and its one thread; those that get
    in do so in order, the rest leaves with the client."""

    async def main() -> None:
        where = token_hex(4)  # with patience: how fast this machine is, is not the point here
        async with aio.connect(
            harness.url, namespace=where, ttl=TTL, connect_timeout=PATIENCE
        ) as client:
            lock = client.lock("x")
            lease = await lock.acquire()
            assert lease is not None
            threads, tokens = set(threading.enumerate()), list[int]()
            turns = asyncio.Event()

            async def once() -> None:
                async with lock as mine:
                    tokens.append(mine.token)
                    if len(tokens) == TURNS:
                        turns.set()

            tasks = [asyncio.create_task(once()) for _ in range(TASKS)]
            end = time.monotonic() + PATIENCE
            while len((await client.inspect("x")).waiters) < TASKS:
                assert not any(task.done() for task in tasks)
                assert time.monotonic() < end
                await asyncio.sleep(0.1)
            assert set(threading.enumerate()) <= threads
            assert await lease.release() is True
            async with asyncio.timeout(PATIENCE):
                await turns.wait()
            assert tokens == sorted(set(tokens))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
