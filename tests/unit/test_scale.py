"""How many threads and tasks a client needs: a handful, whatever it holds (S25)."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import holdfast
from holdfast import aio, events

WAITERS = 1_000
LEASES = 10_000


def ours() -> list[str]:
    """Return the names of the threads holdfast runs."""
    return sorted(
        thread.name for thread in threading.enumerate() if thread.name.startswith("holdfast")
    )


@pytest.mark.slow
def test_ten_thousand_leases_are_kept_by_two_threads() -> None:
    """Renewal of 10,000 leases takes the clock and the worker, in batches, and loses none."""
    before = ours()
    with holdfast.connect("memory://scale-sync") as client:
        leases = [client.lock(f"held/{n}", ttl=6.0).acquire() for n in range(LEASES)]
        batches: list[int] = []
        renew = client.engine.renew

        def counted(claims, timeout):  # type: ignore[no-untyped-def]
            batches.append(len(claims))
            return renew(claims, timeout)

        client.engine.renew = counted  # type: ignore[method-assign]
        time.sleep(7.0)  # longer than any of them would live unrenewed
        threads = [name for name in ours() if name not in before]
        assert all(lease is not None and lease.held for lease in leases)
        assert sum(batches) >= 2 * LEASES
        assert len(batches) < sum(batches) / 20, "leases due together are renewed together"
        assert threads in (["holdfast-clock", "holdfast-worker"], [])
    assert ours() == before


@pytest.mark.slow
def test_a_thousand_async_waiters_cost_no_task_and_no_thread_each() -> None:
    """1,000 waiters are 1,000 tasks of the user's; the client adds at most one."""

    async def main() -> None:
        threads = threading.active_count()
        async with aio.connect("memory://scale-async") as client:
            lock = client.lock("hot", ttl=20)
            order: list[int] = []

            async def wait(number: int) -> None:
                async with lock:
                    order.append(number)

            async with lock:
                waiters = [asyncio.create_task(wait(number)) for number in range(WAITERS)]
                while len((await client.inspect("hot")).waiters) < WAITERS:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                assert len(asyncio.all_tasks()) <= WAITERS + 2
                assert threading.active_count() == threads
            await asyncio.gather(*waiters)
            assert order == sorted(order), "first come, first served"

    asyncio.run(main())


@pytest.mark.slow
def test_ten_thousand_async_leases_are_kept_by_one_task() -> None:
    """Renewal of 10,000 leases on a loop takes one task of the client's and loses none."""

    async def main() -> None:
        async with aio.connect("memory://scale-async-held") as client:
            leases = [await client.lock(f"held/{n}", ttl=6.0).acquire() for n in range(LEASES)]
            await asyncio.sleep(7.0)
            assert all(lease is not None and lease.held for lease in leases)
            assert len(asyncio.all_tasks()) <= 2

    asyncio.run(main())


def test_a_waiter_costs_one_claim_and_no_polling() -> None:
    """A waiter that is handed the lock asked once: the grant was pushed."""
    with holdfast.connect("memory://push") as client:
        asked: list[str] = []
        claim = client.engine.claim

        def counted(wanted, timeout):  # type: ignore[no-untyped-def]
            asked.append(wanted.owner)
            return claim(wanted, timeout)

        client.engine.claim = counted  # type: ignore[method-assign]
        seen: list[events.Event] = []
        client.listen(seen.append)
        lease = client.lock("x").acquire()
        assert lease is not None
        got: list[holdfast.Lease | None] = []
        waiter = threading.Thread(target=lambda: got.append(client.lock("x").acquire()))
        waiter.start()
        while not client.inspect("x").waiters:
            time.sleep(0.001)
        lease.release()
        waiter.join()
        assert got[0] is not None
        got[0].release()
        assert len(asked) == len(set(asked)) == 2
