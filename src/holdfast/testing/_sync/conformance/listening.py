"""(Generated from _async/conformance/listening.py by tools/unasync.py: do not edit.) Events: what a listener hears of a plain cycle, of a wait, of a loss, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast

from ...._concurrency import Event
from ....model import Mode
from .base import Base


class ListeningTests(Base):
    """listen."""

    def test_plain_cycle(self) -> None:
        """Acquired, then released: with name, place, token, owner and how long."""
        heard = self.listen(self.client)
        with self.client.lock("x", ttl=20, label="me") as lease:
            pass
        heard.until(holdfast.events.Released)
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

    def test_wait_that_succeeds(self) -> None:
        """Waiting, with who is in the way, then acquired."""
        holder = self.take(self.connect(label="the holder").lock("x"))
        heard = self.listen(self.client)
        waiter = self.queue(self.client, self.client.lock("x"))
        holder.release()
        lease = waiter.result()
        (acquired,) = heard.until(holdfast.events.Acquired)
        assert heard.kinds() == ["Waiting", "Acquired"]
        (waiting,) = heard.until(holdfast.events.Waiting)
        assert waiting.owner == acquired.owner == lease.owner
        assert waiting.position == 0
        assert "the holder" in waiting.holder or waiting.holder == ""
        assert acquired.waited > 0
        lease.release()

    def test_wait_in_vain(self) -> None:
        """A time-out is Waiting and Missed("timeout"); not waiting is Missed("busy")."""
        holder = self.take(self.connect().lock("x"))
        heard = self.listen(self.client)
        assert self.client.lock("x").acquire(timeout=self.harness.brief) is None
        assert self.client.rwlock("x").read().try_acquire() is None
        timeout, busy = heard.until(holdfast.events.Missed, 2)
        assert heard.kinds() == ["Waiting", "Missed", "Missed"]
        assert (timeout.result, timeout.mode) == ("timeout", Mode.EXCLUSIVE)
        assert timeout.waited >= 0.02
        assert (busy.result, busy.mode) == ("busy", Mode.SHARED)
        holder.release()

    def test_mismatch_is_missed_by_error(self) -> None:
        """An attempt that was refused as a mismatch ends as Missed("error")."""
        lease = self.take(self.connect().semaphore("x", 2))
        heard = self.listen(self.client)
        self.raises(holdfast.LockMismatch, self.client.lock("x").try_acquire)
        (missed,) = heard.until(holdfast.events.Missed)
        assert missed.result == "error"
        lease.release()

    def test_loss(self) -> None:
        """Acquired, then lost, once, with the reason; giving back a lost lease is no release."""
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=20))
        self.client.engine.release(self.claim_behind(lease), self.harness.patience)
        assert lease.release() is False
        (lost,) = heard.until(holdfast.events.Lost)
        assert (lost.token, lost.reason) == (lease.token, lease.lost_reason)
        assert lost.held_for >= 0
        assert heard.kinds()[:2] == ["Acquired", "Lost"]
        assert heard.kinds().count("Lost") == 1

    def test_renewal(self) -> None:
        """Each renewal tells how much was left: a third of the TTL had passed, not all."""
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=self.ttl))
        renewed = heard.until(holdfast.events.Renewed, 2)
        for event in renewed:
            assert event.token == lease.token
            assert event.ttl == self.ttl
            assert 0 < event.remaining < self.ttl
        lease.release()

    def test_listening_ends(self) -> None:
        """After the returned function was called, nothing more is heard; others still hear."""
        first, second = self.listen(self.client), self.listen(self.client)
        with self.client.lock("a"):
            pass
        first.until(holdfast.events.Released)
        first.stop()
        first.stop()  # harmless
        with self.client.lock("b"):
            pass
        second.until(holdfast.events.Released, 2)
        assert {event.name for event in first.events} == {"a"}
        assert second.kinds() == ["Acquired", "Released"] * 2

    def test_failing_listener_harms_nobody(self) -> None:
        """A listener that raises is logged, and the lock, the lease and other listeners go on."""

        def fail(event: holdfast.events.Event) -> None:
            raise RuntimeError("a listener with a bug")

        self.client.listen(fail)
        heard = self.listen(self.client)
        with self.client.lock("x") as lease:
            assert lease.held
        heard.until(holdfast.events.Released)

    def test_events_of_another_client_are_its_own(self) -> None:
        """A listener hears only what its client does."""
        heard = self.listen(self.client)
        other = self.connect()
        done = Event()
        other.listen(lambda event: done.set())
        with other.lock("x"):
            assert done.wait(self.harness.patience)
        assert heard.events == []

    @pytest.mark.parametrize("callback", [None, 5, "print"])
    def test_only_functions_can_listen(self, callback: Any) -> None:
        """What cannot be called is refused at once."""
        with pytest.raises(TypeError, match="listen"):
            self.client.listen(callback)
