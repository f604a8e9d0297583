"""A Redis server whose clock is set, an hour forward or back: tokens rise, nobody is stuck."""

from __future__ import annotations

import time
from typing import Any

import pytest

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.model import Grant, Reason
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.running import elapsed
from holdfast.testing.servers import need
from holdfast.testing.servers.programs import faketime_library
from tests._async.redis_suite import AsyncRedisSuite

HOUR = 3600.0
LONG = 30.0  # a TTL that nobody waits for

both_ways = pytest.mark.parametrize("step", [HOUR, -HOUR])


class TestClock(AsyncRedisSuite):
    """A server with a clock of its own."""

    harness = RedisHarness(fake_clock=True)

    @classmethod
    def setup_class(cls) -> None:
        """Start the server, if its clock can be set."""
        need(faketime_library)
        super().setup_class()

    async def conduct(self, test: Any, **arguments: Any) -> None:
        """Run one test, and set the clock right again."""
        try:
            await super().conduct(test, **arguments)
        finally:
            self.server.step_clock(0)

    @pytest.mark.parametrize("steps", [(HOUR, 0), (-HOUR, 0), (60 * HOUR, 0, -60 * HOUR)])
    async def test_tokens_rise(self, steps: tuple[float, ...]) -> None:
        """Tokens never repeat or fall, over steps of any size, there and back."""
        tokens = [await self.cycle(self.client)]
        for step in steps:
            self.server.step_clock(step)
            for _ in range(3):
                tokens.append(await self.cycle(self.client))
                tokens.append(await self.cycle(self.connect()))
        assert tokens == sorted(set(tokens))

    @both_ways
    async def test_step_is_an_event(self, step: float) -> None:
        """Whoever talks to the server notices: an event says which server, and how far."""
        await self.cycle(self.client)
        heard = self.listen(self.client)
        self.server.step_clock(step)
        await self.cycle(self.client)
        (event,) = await heard.until(holdfast.events.ClockStep)
        assert event.node == self.client.engine.location
        assert event.step == pytest.approx(step, abs=1)
        await self.cycle(self.client)
        assert heard.kinds().count("ClockStep") == 1

    async def test_small_corrections_are_no_event(self) -> None:
        """A clock that is slewed by milliseconds is as good as ours."""
        heard = self.listen(self.client)
        for step in (0.01, -0.01, 0.02):
            self.server.step_clock(step)
            await self.cycle(self.client)
        await self.cycle(self.client)
        await heard.until(holdfast.events.Released, 4)
        assert "ClockStep" not in heard.kinds()

    @both_ways
    async def test_first_claim_after_a_step(self, step: float) -> None:
        """A claim that the server holds to be late, by its new clock, is sent again and granted."""
        await self.cycle(self.client)
        self.server.step_clock(step)
        lease = await self.client.lock("x").try_acquire()
        assert lease is not None
        assert lease.held
        assert await lease.release() is True

    async def test_forward_ends_leases(self) -> None:
        """All leases end at once: the holder is told by its next renewal, the waiter gets in."""
        lease = await self.take(self.client.lock("x", ttl=0.9))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=0.9))
        self.server.step_clock(HOUR)
        await self.until_lost(lease)
        assert lease.lost_reason in (Reason.EXPIRED, Reason.STOLEN)
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True

    async def test_forward_while_nobody_waits(self) -> None:
        """A holder that still relies on a lock which the server thinks is over gives it back as its
        own, if nobody has come meanwhile; what is over by its own clock it does not."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        claim = self.claim("y", ttl=0.3)
        assert isinstance(await self.client.engine.claim(claim, 5.0), Grant)
        self.server.step_clock(HOUR)
        assert await lease.release() is True
        assert await self.cycle(self.client) > lease.token
        await asleep(0.35)
        assert await self.client.engine.release(claim, 5.0) is False

    async def test_records_outlive_their_last_token_by_a_day(self) -> None:
        """However the days fall: a floor forgotten any earlier could repeat a token (S19)."""
        for hours in range(0, 60, 5):
            self.server.step_clock(hours * HOUR)
            await self.cycle(self.client)
            left = self.server.command("TTL", self.key("x"))
            assert 24 * HOUR < left <= 48 * HOUR + 1

    async def test_back_keeps_nobody_for_longer_than_its_ttl(self) -> None:
        """A dead holder's lock is free about one TTL after the step, not an hour later."""
        claim = self.claim("x", ttl=0.6)
        grant = await self.die_holding(claim)
        waiter = await self.queue(self.client, self.client.lock("x"))
        self.server.step_clock(-HOUR)
        started = time.monotonic()
        lease = await waiter.result()
        assert elapsed(started) < 10
        assert lease.token > grant.token
        assert await lease.release() is True

    @both_ways
    async def test_living_holder(self, step: float) -> None:
        """Who renews after a step back goes on as before; after one forward it is told. It never
        counts on more than its TTL."""
        heard = self.listen(self.client)
        lease = await self.take(self.client.lock("x", ttl=0.9))
        self.server.step_clock(step)
        if step > 0:
            await self.until_lost(lease)
        else:
            await heard.until(holdfast.events.Renewed, 2)
            assert lease.held
            assert lease.remaining() <= 0.9
            assert await lease.release() is True
        await self.until_free("x")

    @both_ways
    async def test_grants_pushed_after_a_step(self, step: float) -> None:
        """A waiter that queued before the step gets in after it, with a lease that is worth no
        more than a TTL."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=2))
        self.server.step_clock(step)
        await lease.release()
        second = await waiter.result()
        assert second.token > lease.token
        assert 0 < second.remaining() < 2
        await second.extend()
        assert await second.release() is True

    @both_ways
    async def test_force(self, step: float) -> None:
        """A lock can be broken after a step: nobody is left inside, and the queue moves up."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=LONG))
        self.server.step_clock(step)
        assert await self.connect().force_release("x", lease.token) == (1 if step < 0 else 0)
        second = await waiter.result()
        assert self.holders("x") == [second.owner]
        assert await second.release() is True
        assert await lease.release() is False

    @both_ways
    async def test_semaphore(self, step: float) -> None:
        """Permits of the dead come back after a step as well, and never too many of them."""
        for _ in range(2):
            await self.die_holding(self.claim("s", "semaphore-2", ttl=0.6))
        waiter = await self.queue(self.client, self.client.semaphore("s", 2))
        self.server.step_clock(step)
        permit = await waiter.result()
        second = await self.take(self.client.semaphore("s", 2))
        assert await self.client.semaphore("s", 2).try_acquire() is None
        assert await permit.release() is True
        assert await second.release() is True

    @both_ways
    async def test_block(self, step: float) -> None:
        """With on_clock_step='block' nothing is claimed for max_ttl after a step; what is held is
        renewed and given back."""
        client = self.connect(on_clock_step="block", max_ttl=1, ttl=1, connect_timeout=0.5)
        await self.cycle(client)
        self.server.step_clock(step)
        started = time.monotonic()
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "clock was set" in str(error)
        assert "on_clock_step" in str(error)
        await self.until_granted(client)
        assert elapsed(started) >= 1
        await self.until_free("x")

    async def test_block_of_a_waiter(self) -> None:
        """A grant that is pushed because a step ended another's lease is not believed."""
        client = self.connect(on_clock_step="block", max_ttl=1, ttl=1, connect_timeout=0.5)
        lease = await self.take(self.client.lock("x", ttl=LONG))
        waiter = await self.queue(client, client.lock("x", ttl=1))
        self.server.step_clock(HOUR)
        started = time.monotonic()
        await self.connect().inspect("x")  # whoever looks first ends what is over
        second = await waiter.result()
        assert elapsed(started) >= 1
        assert second.token > lease.token
        assert await second.release() is True
        assert await lease.release() is False
