"""DynamoDB under asyncio: cancelled tasks leave nothing behind, few threads serve many tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from secrets import token_hex

import pytest

from holdfast import aio
from holdfast.testing.dynamodb_harness import DynamoDBHarness

TTL = 30.0
PATIENCE = 30.0  # seconds until what was cancelled is given back
CANCELS = 12
TASKS = 30


@pytest.fixture(scope="module")
def harness() -> Iterator[DynamoDBHarness]:
    """One server for all tests here."""
    found = DynamoDBHarness()
    found.start()
    yield found
    found.stop()


async def until_idle(client: aio.Client, name: str) -> None:
    """Return when nobody holds or waits."""
    async with asyncio.timeout(PATIENCE):
        while (await client.inspect(name)).kind is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def helpers() -> int:
    """Return how many threads make requests for tasks."""
    return sum(thread.name.startswith("holdfast-dynamodb") for thread in threading.enumerate())


@pytest.mark.parametrize("kind", ["alone", "waiting"])
def test_cancel_at_any_time(harness: DynamoDBHarness, kind: str) -> None:
    """Before, during or after a request: nobody keeps the lock or a place in its queue."""

    async def main() -> None:
        async with aio.connect(harness.url, namespace=token_hex(6), ttl=TTL) as client:
            await client.ping()
            holder = await client.lock("x").acquire() if kind == "waiting" else None
            for number in range(CANCELS):
                task = asyncio.create_task(client.lock("x").acquire())
                await asyncio.sleep(number * 0.002)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    lease = await task
                    assert lease is not None
                    await lease.release()
            if holder is not None:
                assert await holder.release() is True
            await until_idle(client, "x")
            async with client.lock("x", timeout=PATIENCE) as lease:
                assert lease.held

    asyncio.run(main())


def test_a_slow_server_does_not_stop_the_loop(harness: DynamoDBHarness) -> None:
    """While requests wait for their answers, other tasks go on."""

    async def main() -> None:
        async with aio.connect(harness.url, namespace=token_hex(6), ttl=TTL) as client:
            await client.ping()
            harness.proxy.delay(0.5)
            try:
                taking = asyncio.create_task(client.lock("x").acquire())
                turns = 0
                while not taking.done():
                    await asyncio.sleep(0.01)
                    turns += 1
                lease = await taking
            finally:
                harness.proxy.heal()
            assert turns >= 5
            assert lease is not None
            assert await lease.release() is True

    asyncio.run(main())


def test_few_threads_for_many_tasks(harness: DynamoDBHarness) -> None:
    """However many wait or hold: no thread for each, and none is left when the client is closed."""
    before = helpers()

    async def main() -> None:
        url = f"{harness.url}&connections=4"
        async with aio.connect(url, namespace=token_hex(6), ttl=TTL) as client:
            first = await client.lock("x").acquire()
            assert first is not None

            async def cycle(name: str) -> None:
                async with client.lock(name, timeout=PATIENCE):
                    assert helpers() - before <= 4

            waiting = [asyncio.create_task(cycle("x")) for _ in range(5)]
            await asyncio.gather(*(cycle(f"y/{number}") for number in range(TASKS)))
            assert await first.release() is True
            await asyncio.gather(*waiting)

    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name.startswith("holdfast-dynamodb"):
            thread.join(PATIENCE)
    assert helpers() <= before
