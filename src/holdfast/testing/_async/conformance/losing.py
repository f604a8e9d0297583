"""A lease that is taken away behind its holder's back: who is told, how, and that it is final."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast.aio as holdfast

from ...._concurrency import AsyncEvent
from ....model import Reason
from ...running import AsyncBody, AsyncSpawned
from .base import AsyncBase

WAYS = ("force", "release", "replaced")
every_way = pytest.mark.parametrize("way", WAYS)


class AsyncLosingTests(AsyncBase):
    """Loss, as the holder sees it (S17, S26)."""

    def short(self, name: str = "x", **options: Any) -> holdfast.Lock:
        """Return a lock whose holder hears of a loss soon, at the latest by renewal."""
        return self.client.lock(name, ttl=self.ttl, timeout=self.harness.patience, **options)

    async def take_away(self, lease: holdfast.Lease, way: str = "force") -> set[Reason]:
        """Let somebody else end the hold, and return the reasons that fit."""
        if way == "force":
            assert await self.connect().force_release(lease.name, lease.token) == 1
            told = {Reason.FORCED}
            # Without push it is found out by renewal, which sees only that the record is gone.
            return told if self.client.guarantees.push else told | {Reason.EXPIRED}
        claim = self.claim_behind(lease)
        if way == "release":
            assert await self.client.engine.release(claim, self.harness.patience) is True
            return {Reason.EXPIRED}
        # By somebody who waits: a renewal that comes in between would find the record gone.
        other = self.connect()
        waiter = await self.queue(other, other.lock(lease.name))
        assert await self.client.engine.release(claim, self.harness.patience) is True
        self.successor = await waiter.result()
        return {Reason.STOLEN}

    @every_way
    async def test_loss_is_noticed(self, way: str) -> None:
        """The event is set, `held` is false, on_lost is called once, and the reason fits."""
        called: list[tuple[holdfast.Lease, Reason]] = []
        done = AsyncEvent()

        async def note(lease: holdfast.Lease, reason: Reason) -> None:
            called.append((lease, reason))
            done.set()

        lease = await self.take(self.short(on_lost=note))
        reasons = await self.take_away(lease, way)
        await self.until_lost(lease)
        assert not lease.held
        assert lease.remaining() == 0
        assert not lease.suspended
        assert lease.lost_reason in reasons
        assert not lease.released
        assert await done.wait(self.harness.patience)
        assert called == [(lease, lease.lost_reason)]

    @every_way
    async def test_lost_is_final(self, way: str) -> None:
        """Nothing brings a lost lease back, and it says the same for ever."""
        lease = await self.take(self.short())
        reasons = await self.take_away(lease, way)
        await self.until_lost(lease)
        for call in (lease.ensure_held, lease.extend):
            error = await self.raises(holdfast.LeaseLost, call)
            assert error.name == "x"
            assert error.token == lease.token
            assert error.engine == self.client.engine.location
            assert error.reason in reasons
        assert await lease.release() is False
        assert await lease.release() is False
        assert lease.lost.is_set()
        assert lease.lost_reason in reasons
        assert not lease.held

    @every_way
    async def test_body_is_told_and_leaving_raises(self, way: str) -> None:
        """A task's body is cancelled, a thread's sees `lost`; leaving `with` raises LeaseLost."""
        entered = AsyncEvent()
        leases: list[holdfast.Lease] = []

        async def body() -> None:
            async with self.short() as lease:
                leases.append(lease)
                entered.set()
                await AsyncBody.work_on(lease)

        inside = AsyncSpawned(body)
        assert await entered.wait(self.harness.patience)
        reasons = await self.take_away(leases[0], way)
        error = await self.raises(holdfast.LeaseLost, inside.result)
        assert error.reason in reasons
        assert error.token == leases[0].token

    async def test_body_that_ended_well_raises_too(self) -> None:
        """Work that finished under a lost lease must not look as if all were well."""

        async def body() -> None:
            async with self.short(cancel_on_loss=False) as lease:
                await self.take_away(lease)
                await self.until_lost(lease)

        await self.raises(holdfast.LeaseLost, body)

    async def test_error_of_the_body_wins(self) -> None:
        """What the body raised after the loss is what the caller sees."""

        async def body() -> None:
            async with self.short(cancel_on_loss=False) as lease:
                await self.take_away(lease)
                await self.until_lost(lease)
                raise KeyError("the body's own")

        error = await self.raises(KeyError, body)
        assert error.args == ("the body's own",)

    async def test_lease_of_acquire_raises_on_leaving_too(self) -> None:
        """`with lock.acquire() as lease` is the same as `with lock` when the lease is lost."""

        async def body() -> None:
            lease = await self.take(self.short(cancel_on_loss=False))
            async with lease:
                await self.take_away(lease)
                await self.until_lost(lease)

        await self.raises(holdfast.LeaseLost, body)

    async def test_entering_a_lost_lease_is_refused(self) -> None:
        """`with lease` on one that is over raises before the body runs."""
        lost = await self.take(self.short())
        await self.take_away(lost)
        await self.until_lost(lost)
        released = await self.take(self.client.lock("y"))
        await released.release()

        async def enter(lease: holdfast.Lease) -> None:
            async with lease:
                pytest.fail("entered a lease that is over")

        await self.raises(holdfast.LeaseLost, enter, lost)
        await self.raises(holdfast.LeaseLost, enter, released)

    async def test_release_finds_out_that_it_was_gone(self) -> None:
        """A release that the engine answers with "not yours" is False, and marks a loss (S34)."""
        lease = await self.take(self.client.lock("x", ttl=20))
        await self.take_away(lease, "release")
        assert await lease.release() is False
        assert lease.lost.is_set()
        assert lease.lost_reason is Reason.EXPIRED

    async def test_leaving_finds_out_that_it_was_gone(self) -> None:
        """A body whose lock was gone by the time it left learns of it by LeaseLost."""

        async def body() -> None:
            async with self.client.lock("x", ttl=20, cancel_on_loss=False) as lease:
                await self.take_away(lease, "replaced")

        await self.raises(holdfast.LeaseLost, body)
        assert self.successor.held
        await self.successor.release()

    async def test_own_release_is_no_loss(self) -> None:
        """Releasing it yourself sets no event, calls nobody, and leaving `with` raises nothing."""
        called: list[object] = []
        lock = self.client.lock("x", on_lost=lambda lease, reason: called.append(reason))
        async with lock as lease:
            assert await lease.release() is True
        assert not lease.lost.is_set()
        assert lease.lost_reason is None
        await self.client.close()  # waits for callbacks
        assert called == []

    async def test_others_are_not_touched(self) -> None:
        """The loss of one lease leaves every other lease of the client as it was."""
        lost = await self.take(self.short("a"))
        kept = await self.take(self.short("b"))
        await self.take_away(lost)
        await self.until_lost(lost)
        assert not await kept.lost.wait(self.ttl)
        assert kept.held
        assert await kept.release() is True

    async def test_all_who_wait_for_the_loss_are_told(self) -> None:
        """`lost` can be waited for by many, and by who comes too late."""
        lease = await self.take(self.short())
        waiters = [AsyncSpawned(lease.lost.wait, self.harness.patience) for _ in range(3)]
        assert not await lease.lost.wait(0.01)
        await self.take_away(lease)
        for waiter in waiters:
            assert await waiter.result() is True
        assert await lease.lost.wait(0) is True

    async def test_failing_callback_harms_nobody(self) -> None:
        """An on_lost that raises is logged; the next loss is still told."""
        told = AsyncEvent()

        def fail(lease: holdfast.Lease, reason: Reason) -> None:
            raise RuntimeError("a callback with a bug")

        first = await self.take(self.short("a", on_lost=fail))
        second = await self.take(self.short("b", on_lost=lambda lease, reason: told.set()))
        await self.take_away(first)
        await self.take_away(second)
        assert await told.wait(self.harness.patience)
        assert first.lost.is_set()
