"""Keeping a lease: extend, max_hold, and asking whether it is still held (S8, S14, S15)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

import holdfast.aio as holdfast

from ...._concurrency import AsyncEvent, asleep
from ....model import Claim, Reason, Renewal
from ....rules import validity
from ...running import AsyncBody, AsyncSpawned, elapsed
from .base import AsyncBase


class AsyncKeepingTests(AsyncBase):
    """What a holder may ask of its own lease."""

    # --- extend ---

    async def test_extend_sets_and_never_adds(self) -> None:
        """However often it is extended, what is left is never more than the TTL asked for."""
        lease = await self.take(self.client.lock("x", ttl=10))
        for _ in range(3):
            await lease.extend()
            assert 5 < lease.remaining() < 10
        assert lease.ttl == 10
        (entry,) = (await self.client.inspect("x")).holders
        assert entry.expires_in <= 10
        await lease.release()

    @pytest.mark.parametrize("ttl", [5, 40])
    async def test_extend_to_another_ttl(self, ttl: float) -> None:
        """extend(ttl) changes the TTL, here and in the engine, to a shorter or a longer one."""
        lease = await self.take(self.client.lock("x", ttl=20))
        if self.client.guarantees.expiry == "session":
            await self.raises(holdfast.NotSupported, lease.extend, ttl)
            assert lease.held
            await lease.release()
            return
        await lease.extend(ttl)
        assert lease.ttl == ttl
        assert ttl / 2 < lease.remaining() < ttl
        (entry,) = (await self.client.inspect("x")).holders
        assert ttl / 2 < entry.expires_in <= ttl
        await lease.release()

    async def test_shortened_lease_is_renewed_in_its_new_rhythm(self) -> None:
        """A lease that was cut short lives on: renewal follows the new TTL."""
        if self.client.guarantees.expiry == "session":
            return
        lease = await self.take(self.client.lock("x", ttl=20))
        await lease.extend(self.ttl)
        assert lease.remaining() <= self.ttl
        assert not await lease.lost.wait(2 * self.ttl)
        assert lease.held
        assert await lease.release() is True

    async def test_lengthened_lease_is_kept_by_the_engine(self) -> None:
        """A short lease that was extended is still held after its old TTL."""
        if self.client.guarantees.expiry == "session":
            return
        lease = await self.take(self.client.lock("x", ttl=self.ttl))
        await lease.extend(20)
        assert await self.connect().lock("x").acquire(timeout=1.5 * self.ttl) is None
        assert lease.remaining() > 10
        assert await lease.release() is True

    async def test_renewal_on_its_way_does_not_undo_extend(self) -> None:
        """A renewal that was sent before extend and arrives after it must not leave the holder
        counting on more time than the engine gives."""
        if self.client.guarantees.expiry == "session":
            return
        engine, renew = self.client.engine, self.client.engine.renew
        sent, go_on, arrived = AsyncEvent(), AsyncEvent(), AsyncEvent()
        short = 5 * self.ttl

        async def slow(claims: Sequence[Claim], timeout: float) -> list[Renewal]:
            if claims[0].ttl != short or sent.is_set():
                return await renew(claims, timeout)
            sent.set()
            await go_on.wait(short / 3)
            answers = await renew(claims, timeout)
            arrived.set()
            return answers

        setattr(engine, "renew", slow)  # noqa: B010
        lease = await self.take(self.client.lock("x", ttl=short))
        assert await sent.wait(self.harness.patience)
        extending = AsyncSpawned(lease.extend, 20)  # may be answered now, or wait for the other
        for _ in range(10):
            if not extending.done:
                await asleep(0.01)
        go_on.set()
        await extending.result()
        assert await arrived.wait(self.harness.patience)
        (entry,) = (await self.client.inspect("x")).holders
        assert lease.remaining() <= entry.expires_in
        await lease.release()

    @pytest.mark.parametrize("ttl", [0, -1, float("nan"), 1e9, "5", True])
    async def test_extend_to_nonsense_changes_nothing(self, ttl: Any) -> None:
        """A TTL that the engine does not keep is refused, and the lease stays as it was."""
        lease = await self.take(self.client.lock("x", ttl=20))
        with pytest.raises((ValueError, TypeError), match="ttl"):
            await lease.extend(ttl)
        assert lease.ttl == 20
        assert lease.remaining() > 10
        assert await lease.release() is True

    async def test_extend_never_revives(self) -> None:
        """Extending what is released or lost raises LeaseLost, and takes nothing."""
        released = await self.take(self.client.lock("a"))
        await released.release()
        error = await self.raises(holdfast.LeaseLost, released.extend)
        assert "you released it" in str(error)
        lost = await self.take(self.client.lock("b", ttl=self.ttl))
        await self.client.force_release("b")
        await self.until_lost(lost)
        await self.raises(holdfast.LeaseLost, lost.extend)
        assert list(await self.client.locks()) == []

    async def test_extend_finds_out_that_it_is_lost(self) -> None:
        """When the engine no longer knows the hold, extend says so and the lease is lost."""
        lease = await self.take(self.client.lock("x", ttl=20))
        await self.client.engine.release(self.claim_behind(lease), self.harness.patience)
        await self.raises(holdfast.LeaseLost, lease.extend)
        assert lease.lost.is_set()
        assert lease.lost_reason is Reason.EXPIRED
        assert (await self.client.inspect("x")).kind is None

    async def test_many_leases_are_renewed_together(self) -> None:
        """A hundred leases of one client all outlive their TTL."""
        leases = [
            await self.take(self.client.lock(f"x/{number}", ttl=2 * self.ttl))
            for number in range(100)
        ]
        assert not await leases[0].lost.wait(3 * self.ttl)
        assert all(lease.held and not lease.suspended for lease in leases)
        for lease in leases:
            assert await lease.release() is True

    # --- ensure_held ---

    async def test_ensure_held_returns_while_held(self) -> None:
        """Without a margin it looks at the clock; with a small one too."""
        lease = await self.take(self.client.lock("x", ttl=20))
        await lease.ensure_held()
        await lease.ensure_held(margin=1)
        await lease.release()
        error = await self.raises(holdfast.LeaseLost, lease.ensure_held)
        assert "you released it" in str(error)
        assert error.token == lease.token
        assert error.reason is None

    async def test_margin_is_confirmed_by_the_engine(self) -> None:
        """A margin beyond what is confirmed makes it ask, and then it is confirmed."""
        lease = await self.take(self.client.lock("x", ttl=20))
        heard = self.listen(self.client)
        await asleep(0.6)
        margin = validity(0.0, lease.ttl) - 0.4
        assert lease.remaining() < margin
        await lease.ensure_held(margin=margin)
        assert await heard.until(holdfast.events.Renewed)
        assert lease.held
        await lease.release()

    async def test_impossible_margin_is_refused(self) -> None:
        """A margin that no renewal could ever confirm is a ValueError."""
        lease = await self.take(self.client.lock("x", ttl=20))
        with pytest.raises(ValueError, match="margin"):
            await lease.ensure_held(margin=20)
        assert await lease.release() is True

    async def test_margin_finds_out_that_it_is_lost(self) -> None:
        """Asking the engine for a margin notices that the hold is gone."""
        lease = await self.take(self.client.lock("x", ttl=20))
        await self.client.engine.release(self.claim_behind(lease), self.harness.patience)
        other = await self.take(self.connect().lock("x"))
        await lease.ensure_held()  # cannot know yet
        await asleep(0.05)
        margin = validity(0.0, lease.ttl) - 0.01
        error = await self.raises(holdfast.LeaseLost, lease.ensure_held, margin)
        assert error.reason is Reason.STOLEN
        assert lease.lost.is_set()
        assert other.held
        await other.release()

    # --- max_hold ---

    async def test_max_hold_ends_the_lease_not_the_lock(self) -> None:
        """At max_hold the lease is lost; the engine keeps the lock for one more TTL."""
        other = self.connect()
        started = time.monotonic()
        lease = await self.take(self.client.lock("x", ttl=self.ttl, max_hold=1.2 * self.ttl))
        assert lease.held
        waiter = await self.queue(other, other.lock("x"))
        await self.until_lost(lease)
        assert elapsed(started) >= 1.2 * self.ttl
        assert lease.lost_reason is Reason.MAX_HOLD
        assert not lease.held
        assert not waiter.done
        await self.raises(holdfast.LeaseLost, lease.ensure_held)
        second = await waiter.result(self.ttl + self.harness.patience)
        assert elapsed(started) >= 2.1 * self.ttl
        assert second.token > lease.token
        await second.release()

    async def test_leaving_after_max_hold_frees_at_once(self) -> None:
        """The body is told, leaves with LeaseLost, and the lock is free before its TTL is over."""
        lock = self.client.lock("x", ttl=30, max_hold=0.1)

        async def overstay() -> None:
            async with lock as lease:
                await AsyncBody.work_on(lease)

        error = await self.raises(holdfast.LeaseLost, overstay)
        assert error.reason is Reason.MAX_HOLD
        assert "max_hold" in str(error)
        lease = await self.take(self.connect().lock("x"))
        await lease.release()

    async def test_release_after_max_hold(self) -> None:
        """Giving it back after max_hold is true once: it was still ours in the engine."""
        lease = await self.take(self.client.lock("x", ttl=30, max_hold=0.05))
        await self.until_lost(lease)
        assert await lease.release() is True
        assert await lease.release() is False
        assert (await self.client.inspect("x")).kind is None

    async def test_max_hold_not_reached_is_no_loss(self) -> None:
        """A hold that ends before max_hold ends well."""
        async with self.client.lock("x", max_hold=30) as lease:
            assert lease.remaining() <= 30
        assert lease.lost_reason is None
        assert lease.released

    @pytest.mark.parametrize("max_hold", [0, -1, float("nan"), "5"])
    async def test_nonsense_max_hold_is_refused(self, max_hold: Any) -> None:
        """What is no time to hold raises one sentence."""
        with pytest.raises((ValueError, TypeError), match="max_hold must be"):
            self.client.lock("x", max_hold=max_hold)
