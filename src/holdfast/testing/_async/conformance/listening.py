"""Events: what a listener hears of a plain cycle, of a wait, of a loss, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast.aio as holdfast

from ...._concurrency import AsyncEvent
from ....model import Mode
from .base import AsyncBase


class AsyncListeningTests(AsyncBase):
    """listen."""

    async def test_plain_cycle(self) -> None:
        """Acquired, then released: with name, place, token, owner and how long."""
        heard = self.listen(self.client)
        async with self.client.lock("x", ttl=20, label="me") as lease:
            pass
        await heard.until(holdfast.events.Released)
        assert heard.kinds() == ["Acquired", "Released"]
        acquired, released = heard.events
        for event in (acquired, released):
            assert event.name == "x"
            assert event.engine == self.client.engine.location
            assert event.namespace == self.namespace
            assert isinstance(event, holdfast.events.LeaseEvent)
            assert (event.token, event.owner, event.label) == (lease.token, lease.owner, "me")
        assert isinstance(acquired, holdfast.events.Acquired)
        assert (acquired.mode, acquired.ttl) == (Mode.EXCLUSIVE, 20)
        assert acquired.waited >= 0
        assert isinstance(released, holdfast.events.Released)
        assert released.outcome is True
        assert released.held_for >= 0

    async def test_wait_that_succeeds(self) -> None:
        """Waiting, with who is in the way, then acquired."""
        holder = await self.take(self.connect(label="the holder").lock("x"))
        heard = self.listen(self.client)
        waiter = await self.queue(self.client, self.client.lock("x"))
        await holder.release()
        lease = await waiter.result()
        (acquired,) = await heard.until(holdfast.events.Acquired)
        assert heard.kinds() == ["Waiting", "Acquired"]
        (waiting,) = await heard.until(holdfast.events.Waiting)
        assert waiting.owner == acquired.owner == lease.owner
        assert waiting.position == 0
        assert "the holder" in waiting.holder or waiting.holder == ""
        assert acquired.waited > 0
        await lease.release()

    async def test_wait_in_vain(self) -> None:
        """A time-out is Waiting and Missed("timeout"); not waiting is Missed("busy")."""
        holder = await self.take(self.connect().lock("x"))
        heard = self.listen(self.client)
        assert await self.client.lock("x").acquire(timeout=self.harness.brief) is None
        assert await self.client.rwlock("x").read().try_acquire() is None
        timeout, busy = await heard.until(holdfast.events.Missed, 2)
        assert heard.kinds() == ["Waiting", "Missed", "Missed"]
        assert (timeout.result, timeout.mode) == ("timeout", Mode.EXCLUSIVE)
        assert timeout.waited >= 0.02
        assert (busy.result, busy.mode) == ("busy", Mode.SHARED)
        await holder.release()

    async def test_mismatch_is_missed_by_error(self) -> None:
        """An attempt that was refused as a mismatch ends as Missed("error")."""
        lease = await self.take(self.connect().semaphore("x", 2))
        heard = self.listen(self.client)
        await self.raises(holdfast.LockMismatch, self.client.lock("x").try_acquire)
        (missed,) = await heard.until(holdfast.events.Missed)
        assert missed.result == "error"
        await lease.release()

    async def test_loss(self) -> None:
        """Acquired, then lost, once, with the reason; giving back a lost lease is no release."""
        heard = self.listen(self.client)
        lease = await self.take(self.client.lock("x", ttl=20))
        await self.client.engine.release(self.claim_behind(lease), self.harness.patience)
        assert await lease.release() is False
        (lost,) = await heard.until(holdfast.events.Lost)
        assert (lost.token, lost.reason) == (lease.token, lease.lost_reason)
        assert lost.held_for >= 0
        assert heard.kinds()[:2] == ["Acquired", "Lost"]
        assert heard.kinds().count("Lost") == 1

    async def test_renewal(self) -> None:
        """Each renewal tells how much was left: a third of the TTL had passed, not all."""
        heard = self.listen(self.client)
        lease = await self.take(self.client.lock("x", ttl=self.ttl))
        renewed = await heard.until(holdfast.events.Renewed, 2)
        for event in renewed:
            assert event.token == lease.token
            assert event.ttl == self.ttl
            assert 0 < event.remaining < self.ttl
        await lease.release()

    async def test_listening_ends(self) -> None:
        """After the returned function was called, nothing more is heard; others still hear."""
        first, second = self.listen(self.client), self.listen(self.client)
        async with self.client.lock("a"):
            pass
        await first.until(holdfast.events.Released)
        first.stop()
        first.stop()  # harmless
        async with self.client.lock("b"):
            pass
        await second.until(holdfast.events.Released, 2)
        assert {event.name for event in first.events} == {"a"}
        assert second.kinds() == ["Acquired", "Released"] * 2

    async def test_failing_listener_harms_nobody(self) -> None:
        """A listener that raises is logged, and the lock, the lease and other listeners go on."""

        def fail(event: holdfast.events.Event) -> None:
            raise RuntimeError("a listener with a bug")

        self.client.listen(fail)
        heard = self.listen(self.client)
        async with self.client.lock("x") as lease:
            assert lease.held
        await heard.until(holdfast.events.Released)

    async def test_events_of_another_client_are_its_own(self) -> None:
        """A listener hears only what its client does."""
        heard = self.listen(self.client)
        other = self.connect()
        done = AsyncEvent()
        other.listen(lambda event: done.set())
        async with other.lock("x"):
            assert await done.wait(self.harness.patience)
        assert heard.events == []

    @pytest.mark.parametrize("callback", [None, 5, "print"])
    async def test_only_functions_can_listen(self, callback: Any) -> None:
        """What cannot be called is refused at once."""
        with pytest.raises(TypeError, match="listen"):
            self.client.listen(callback)
