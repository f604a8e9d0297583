"""Redlock under asyncio: cancelled tasks leave nothing behind, many share one connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from holdfast import aio
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.servers import RedisServer

TTL = 30.0
BOUND = 5.0  # seconds until what was cancelled is given back
CANCELS, MOST_CANCELS = 40, 200
TASKS = 100


@pytest.fixture(scope="module")
def harness() -> Iterator[RedlockHarness]:
    """Five servers for all tests here."""
    found = RedlockHarness()
    found.start()
    yield found
    found.stop()


def connect(harness: RedlockHarness, namespace: str) -> aio.Client:
    return aio.connect(harness.url, namespace=namespace, ttl=TTL, node_timeout=1.0)


def records(server: RedisServer, namespace: str) -> list[str]:
    """Return the names that somebody holds or waits for, asked without our link."""
    keys = server.command("KEYS", "{" + namespace + "/1/*}")
    return [key for key in keys if server.command("HEXISTS", key, "m")]


def connections(server: RedisServer) -> int:
    lines = server.command("CLIENT", "LIST", "TYPE", "normal").splitlines()
    return sum("name=holdfast" in line for line in lines)


async def until_free(harness: RedlockHarness, client: aio.Client, namespace: str) -> None:
    """Return when no node has a holder or a waiter any more."""
    end = time.monotonic() + BOUND
    while any(records(server, namespace) for server in harness.servers):
        assert time.monotonic() < end, [records(server, namespace) for server in harness.servers]
        # Nodes that were silent when something was given back are told when they are next used.
        with suppress(aio.EngineUnavailable):
            await client.inspect("x")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", ["alone", "waiting", "semaphore"])
def test_a_cancel_in_the_middle_of_a_round(harness: RedlockHarness, kind: str) -> None:
    """Whenever a claim is cancelled, before, during or after a round of votes, no node keeps a seat
    or a place in its queue, and others get the lock."""
    namespace = f"cancel-{kind}"

    async def main() -> None:
        async with connect(harness, namespace) as client, connect(harness, namespace) as other:
            lock = client.semaphore("x", 2) if kind == "semaphore" else client.lock("x")
            lease = await (
                other.semaphore("x", 2) if kind == "semaphore" else other.lock("x")
            ).acquire()
            assert lease is not None
            if kind == "alone":
                await lease.release()
            for proxy in harness.proxies:
                proxy.delay(0.002)
            got = number = 0
            while number < CANCELS or (kind != "waiting" and not got):  # some come too late
                assert number < MOST_CANCELS, "nobody ever got in before it was cancelled"
                task = asyncio.create_task(lock.acquire(timeout=1))
                await asyncio.sleep(0.001 * number)
                number += 1
                task.cancel()
                with suppress(asyncio.CancelledError):
                    mine = await task
                    if mine is not None:
                        got += 1
                        await mine.release()
            harness.heal()
            if kind != "alone":
                await lease.release()
            await until_free(harness, client, namespace)
            third = await other.lock("x").acquire(timeout=BOUND)
            assert third is not None
            await third.release()

    asyncio.run(main())


def test_a_cancel_does_not_spoil_the_answers_of_others(harness: RedlockHarness) -> None:
    """Tasks that share the connection with one that is cancelled get their own answers."""

    async def main() -> None:
        async with connect(harness, "mixed") as client:
            tokens: list[int] = []

            async def work(number: int) -> None:
                for _ in range(10):
                    async with client.lock(f"x{number}") as lease:
                        tokens.append(lease.token)

            workers = [asyncio.create_task(work(number)) for number in range(10)]
            for number in range(CANCELS):
                task = asyncio.create_task(client.lock("y").acquire(timeout=1))
                await asyncio.sleep(0.0005 * (number % 8))
                task.cancel()
                with suppress(asyncio.CancelledError):
                    lease = await task
                    if lease is not None:
                        await lease.release()
            await asyncio.gather(*workers)
            assert len(tokens) == 100
            await until_free(harness, client, "mixed")

    asyncio.run(main())


def test_a_hundred_tasks(harness: RedlockHarness) -> None:
    """A hundred tasks with names of their own, and all of them with one name, share one connection
    to each node, and nothing is left."""

    async def main() -> None:
        async with connect(harness, "hundred") as client:
            await client.ping()
            before = [connections(server) for server in harness.servers]
            tokens: list[int] = []
            inside = 0

            async def own(number: int) -> None:
                for _ in range(3):
                    async with client.lock(f"x{number}"):
                        pass

            async def shared() -> None:
                nonlocal inside
                async with client.lock("hot") as lease:
                    inside += 1
                    assert inside == 1
                    tokens.append(lease.token)
                    await asyncio.sleep(0)
                    inside -= 1

            await asyncio.gather(*(own(number) for number in range(TASKS)))
            await asyncio.gather(*(shared() for _ in range(TASKS)))
            assert tokens == sorted(set(tokens))
            assert len(tokens) == TASKS
            assert [connections(server) for server in harness.servers] == before
            await until_free(harness, client, "hundred")

    asyncio.run(main())
