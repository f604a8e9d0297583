"""When the engine cannot be reached: what is held stays held until its time is over (S7, S9).

These need a harness with `cut` and `heal`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import holdfast.aio as holdfast

from ...._concurrency import asleep
from ....model import Reason
from ...collecting import needs
from ...running import AsyncBody, AsyncSpawned, elapsed
from .base import AsyncBase


class AsyncOutageTests(AsyncBase):
    """A cut link, and what becomes of leases, waiters and calls."""

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test, and heal whatever it cut."""
        try:
            await super().conduct(test, **arguments)
        finally:
            if self.harness.supports("heal"):
                self.harness.heal()

    @needs("cut", "heal")
    async def test_short_cut_suspends_and_resumes(self) -> None:
        """A renewal without answer suspends the lease, still held; the next answer resumes it."""
        told: list[str] = []
        heard = self.listen(self.client)
        lease = await self.take(
            self.client.lock(
                "x",
                ttl=4 * self.ttl,
                on_suspended=lambda lease: told.append("suspended"),
                on_resumed=lambda lease: told.append("resumed"),
            )
        )
        token = lease.token
        self.harness.cut()
        await heard.until(holdfast.events.Suspended)
        assert lease.suspended
        assert lease.held
        self.harness.heal()
        await heard.until(holdfast.events.Resumed)
        assert not lease.suspended
        assert lease.held
        assert lease.token == token
        assert await lease.release() is True
        await self.client.close()
        assert told == ["suspended", "resumed"]

    @needs("cut", "heal")
    async def test_long_cut_is_a_loss(self) -> None:
        """Once its time is over the lease is lost as unreachable, never later than the engine."""
        lease = await self.take(self.client.lock("x", ttl=self.ttl))
        self.harness.cut()
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.UNREACHABLE
        assert not lease.held
        assert not lease.suspended
        self.harness.heal()
        second = await self.take(self.connect().lock("x"))
        assert second.token > lease.token
        assert not lease.held, "lost is final"
        await second.release()

    @needs("cut", "heal")
    async def test_body_learns_of_a_long_cut(self) -> None:
        """The body is told, and leaving raises LeaseLost without waiting for the engine."""

        async def body() -> None:
            async with self.client.lock("x", ttl=self.ttl) as lease:
                self.harness.cut()
                await AsyncBody.work_on(lease)

        error = await self.raises(holdfast.LeaseLost, body)
        assert error.reason is Reason.UNREACHABLE

    @needs("cut", "heal")
    @pytest.mark.parametrize("timeout", [0, 0.1])
    async def test_acquire_says_that_there_is_no_answer(self, timeout: float) -> None:
        """No answer within the time-out is EngineUnavailable, never None, and holds nothing."""
        client = self.connect(connect_timeout=0.5)
        await client.ping()
        self.harness.cut()
        started = time.monotonic()
        error = await self.raises(
            holdfast.EngineUnavailable, lambda: client.lock("x").acquire(timeout=timeout)
        )
        assert isinstance(error, ConnectionError)
        assert error.name == "x"
        assert elapsed(started) < self.harness.patience
        self.harness.heal()
        await self.until_idle("x")
        await (await self.take(self.client.lock("x"))).release()

    @needs("cut", "heal")
    async def test_waiter_survives_a_short_cut(self) -> None:
        """A place in the queue outlives a short cut: the waiter gets in afterwards."""
        await self.die_holding(self.claim("x"))
        waiter = await self.queue(self.client, self.client.lock("x"))
        self.harness.cut()
        await asleep(1.5 * self.ttl)  # it has asked in vain by now
        assert not waiter.done
        self.harness.heal()
        await (await waiter.result()).release()

    @needs("cut", "heal")
    async def test_release_goes_on_in_the_background(self) -> None:
        """Without an answer release is None at once, and the lock is free after the cut (S34)."""
        lease = await self.take(self.client.lock("x", ttl=30))
        self.harness.cut()
        assert await lease.release() is None
        assert not lease.held
        self.harness.heal()
        await self.until_idle("x")

    @needs("cut", "heal")
    async def test_calls_say_that_there_is_no_answer(self) -> None:
        """Looking, ensure_held with a margin and extend raise what they must; it is still held."""
        client = self.connect(connect_timeout=0.3)
        lease = await self.take(client.lock("x", ttl=20))
        self.harness.cut()
        await self.raises(holdfast.EngineUnavailable, client.inspect, "x")
        await self.raises(holdfast.EngineUnavailable, client.locks)
        await lease.ensure_held()
        await asleep(0.05)
        await self.raises(holdfast.EngineUnavailable, lease.ensure_held, 19.76)
        await self.raises(holdfast.OutcomeUnknown, lease.extend)
        assert lease.held
        self.harness.heal()
        await lease.extend()
        assert await lease.release() is True

    @needs("cut", "heal")
    async def test_close_does_not_wait_for_ever(self) -> None:
        """Closing while cut off ends within its time-out; waiters are woken all the same."""
        client = self.connect()
        lease = await self.take(self.client.lock("x"))
        mine = await self.take(client.lock("y"))
        waiter = await self.queue(client, client.lock("x"))
        self.harness.cut()
        closing = AsyncSpawned(client.close, timeout=0.5)
        await closing.result(self.harness.patience)
        await self.raises(holdfast.ClientClosed, waiter.result)
        assert mine.lost_reason is Reason.CLOSED
        self.harness.heal()
        assert lease.held
        await lease.release()
