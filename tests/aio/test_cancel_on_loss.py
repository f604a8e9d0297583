"""When a lease is lost the body is cancelled, once, and only by us (S26)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast import LeaseLost, aio
from holdfast.testing.loop import run
from holdfast.testing.virtual import virtual_client

Body = Callable[[aio.Client, aio.Lease], Awaitable[None]]


def under_lock(body: Body, **options: object) -> None:
    """Run `body` inside `async with lock` on virtual time."""

    async def main() -> None:
        async with virtual_client() as client:
            async with client.lock("x", ttl=10, **options) as lease:  # type: ignore[call-overload]
                await body(client, lease)

    run(main())


def test_the_body_is_cancelled_and_leave_raises_lease_lost() -> None:
    """A body that only sleeps is stopped at the loss, not when it ends."""

    async def body(client: aio.Client, lease: aio.Lease) -> None:
        await client.force_release("x")
        started = asyncio.get_running_loop().time()
        try:
            await asyncio.sleep(3600)
        finally:
            assert asyncio.get_running_loop().time() - started < 0.05

    with pytest.raises(LeaseLost, match="force_release") as caught:
        under_lock(body)
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)


def test_after_lease_lost_the_task_is_not_left_cancelling() -> None:
    """What we cancelled we uncancel: the task can go on, and time-outs around it work."""

    async def main() -> None:
        async with virtual_client() as client:
            with pytest.raises(LeaseLost):
                async with client.lock("x", max_hold=1):
                    await asyncio.sleep(60)
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
            await asyncio.sleep(0.1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    async with client.lock("y"):
                        await asyncio.sleep(60)
            assert not await client.lock("y").locked()

    run(main())


def test_a_cancel_by_somebody_else_stays_a_cancel() -> None:
    """Cancelled from outside and lost in the same instant: the outer cancel wins."""

    async def main() -> None:
        async with virtual_client() as client:

            async def work() -> None:
                async with client.lock("x"):
                    await asyncio.sleep(60)

            task = asyncio.create_task(work())
            await asyncio.sleep(1)
            await client.force_release("x")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()

    run(main())


def test_a_timeout_around_the_lock_stays_a_timeout() -> None:
    """asyncio.timeout outside, loss inside at the same instant: TimeoutError comes out."""

    async def main() -> None:
        async with virtual_client() as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    async with client.lock("x", max_hold=1):
                        await asyncio.sleep(60)

    run(main())


def test_an_error_of_the_body_wins() -> None:
    """A body that answers the cancel with its own error raises that error."""

    async def body(client: aio.Client, lease: aio.Lease) -> None:
        await client.force_release("x")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise KeyError("mine") from None

    with pytest.raises(KeyError, match="mine"):
        under_lock(body)


def test_a_body_that_swallows_the_cancel_still_gets_lease_lost() -> None:
    """Ending well under a lost lease is not ending well."""

    async def body(client: aio.Client, lease: aio.Lease) -> None:
        await client.force_release("x")
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(60)

    with pytest.raises(LeaseLost):
        under_lock(body)


def test_only_the_task_that_entered_is_cancelled() -> None:
    """A child task that works under the lease is the parent's business."""

    async def main() -> None:
        async with virtual_client() as client:
            child: asyncio.Task[str] | None = None

            async def work() -> str:
                await asyncio.sleep(5)
                return "done"

            with pytest.raises(LeaseLost):
                async with client.lock("x", max_hold=1):
                    child = asyncio.create_task(work())
                    await asyncio.sleep(60)
            assert child is not None
            assert await child == "done"

    run(main())


def test_cancel_on_loss_can_be_switched_off() -> None:
    """Then the body runs to its end and LeaseLost comes when it leaves."""
    ran: list[bool] = []

    async def body(client: aio.Client, lease: aio.Lease) -> None:
        await client.force_release("x")
        await asyncio.sleep(1)
        ran.append(lease.held)

    with pytest.raises(LeaseLost):
        under_lock(body, cancel_on_loss=False)
    assert ran == [False]


def test_a_loss_noticed_by_the_body_itself_does_not_cancel_in_the_middle_of_a_step() -> None:
    """`ensure_held` raises LeaseLost to the body that asked; no CancelledError is mixed in."""

    async def body(client: aio.Client, lease: aio.Lease) -> None:
        await client.force_release("x")
        await lease.ensure_held()

    with pytest.raises(LeaseLost):
        under_lock(body)


def test_a_loss_after_leaving_began_cancels_nobody() -> None:
    """The release of a lost lease runs to its end."""

    async def main() -> None:
        async with virtual_client() as client:
            lock = client.lock("x", ttl=10)
            async with lock as lease:
                pass
            await client.force_release("x")
            await asyncio.sleep(1)
            assert lease.lost_reason is None

    run(main())


def test_a_group_cancels_when_any_part_is_lost() -> None:
    """all_of is lost as soon as one of its locks is."""

    async def main() -> None:
        async with virtual_client() as client:
            group = client.all_of(client.lock("x"), client.lock("y"))
            with pytest.raises(LeaseLost, match="'y'"):
                async with group as leases:
                    await client.force_release("y")
                    await asyncio.sleep(60)
            assert leases.lost_reason == "forced"
            assert not await client.lock("x").locked()

    run(main())


def test_with_lease_cancels_like_with_lock() -> None:
    """`async with await lock.acquire() as lease` has the same protection."""

    async def main() -> None:
        async with virtual_client() as client:
            lease = await client.lock("x").acquire()
            assert lease is not None
            with pytest.raises(LeaseLost):
                async with lease:
                    await client.force_release("x")
                    await asyncio.sleep(60)

    run(main())


def test_a_wait_of_ten_ttl_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """A wait without time-out that lasts says who holds the lock, in one line."""

    async def main() -> None:
        async with virtual_client(label="holder") as client:
            async with client.lock("x", ttl=2):
                waiter = asyncio.create_task(client.lock("x", ttl=2).acquire())
                await asyncio.sleep(60)
            lease = await waiter
            assert lease is not None
            await lease.release()

    run(main())
    lines = [record.getMessage() for record in caplog.records if "Still waiting" in record.message]
    assert len(lines) == 1
    assert "held by holder with token" in lines[0]
