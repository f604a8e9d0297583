"""(Generated from _async/conformance/reentrant.py by tools/unasync.py: do not edit.) Entering again: the same task or thread gets the same lease, and nobody else does (S27)."""

from __future__ import annotations

import pytest

import holdfast

from ...running import Spawned
from .base import Base


class ReentrantTests(Base):
    """reentrant=True."""

    def lock(self, name: str = "x") -> holdfast.Lock:
        """Return a new description of the lock: re-entry goes by name, not by object."""
        return self.client.lock(name, reentrant=True)

    def test_same_task_gets_the_same_lease(self) -> None:
        """Entering again gives the same lease and token, through whatever Lock object."""
        with self.lock() as outer:
            with self.lock() as inner:
                assert inner is outer
                assert self.lock().try_acquire() is outer
                assert outer.release() is False
            assert outer.held
        assert outer.released
        assert (self.client.inspect("x")).kind is None

    def test_only_the_last_exit_releases(self) -> None:
        """Inner exits, and inner releases, free nothing; the outermost does."""
        other = self.connect()
        rival = other.lock("x")
        lease = self.take(self.lock())
        for _ in range(3):
            assert self.take(self.lock()) is lease
        for _ in range(3):
            assert lease.release() is False
            assert lease.held
            assert rival.try_acquire() is None
        assert lease.release() is True
        (self.take(rival)).release()

    def test_inner_error_frees_nothing(self) -> None:
        """An error that leaves the inner `with` leaves the outer one held."""

        def inner() -> None:
            with self.lock():
                raise KeyError("inner")

        with self.lock() as lease:
            self.raises(KeyError, inner)
            assert lease.held
        assert lease.released

    def test_another_task_is_kept_out(self) -> None:
        """Another task or thread of the same client waits, through the very same Lock object."""
        lock = self.lock()
        with lock as lease:
            assert Spawned(lock.try_acquire).result() is None
            waiter = self.queue(self.client, lock)
            assert not waiter.done
        second = waiter.result()
        assert second is not lease
        assert second.token > lease.token
        assert second.release() is True

    def test_another_client_is_kept_out(self) -> None:
        """Re-entry is a matter of one client: through another, the same task waits."""
        with self.lock():
            other = self.connect()
            assert other.lock("x", reentrant=True).try_acquire() is None

    def test_finished_task_leaves_its_lease_to_nobody(self) -> None:
        """A task or thread that comes after the holder's has ended is not taken for it."""
        for _ in range(5):
            lease = Spawned(self.take, self.lock()).result()
            assert Spawned(self.lock().try_acquire).result() is None
            assert lease.release() is True

    def test_plain_lock_is_not_re_entered(self) -> None:
        """Without reentrant=True the same task waits for itself, and gives up."""
        with self.client.lock("x"):
            assert self.client.lock("x").try_acquire() is None

    def test_reading_then_writing_is_refused(self) -> None:
        """Who reads and wants to write would wait for itself: it raises, and still reads."""
        rwlock = self.client.rwlock("x", reentrant=True)
        with rwlock.read() as reader:
            error = self.raises(holdfast.NotSupported, rwlock.write().acquire)
            assert error.name == "x"
            assert reader.held
            with rwlock.read() as again:
                assert again is reader
        with rwlock.write() as writer:
            with rwlock.write() as inner:
                assert inner is writer

    def test_nodes_of_a_tree_are_told_apart(self) -> None:
        """The same path is entered again; a path beside it is another lock."""
        one = self.client.tree("a/b", reentrant=True).write()
        two = self.client.tree("a/c", reentrant=True).write()
        with one as lease, one as same, two as sibling:
            assert same is lease
            assert sibling is not lease

    def test_entering_again_after_a_loss_is_refused_inside(self) -> None:
        """While the body of a lost lease still runs, entering again raises LeaseLost."""
        lock = self.client.lock("x", reentrant=True, ttl=self.ttl, cancel_on_loss=False)

        def body() -> None:
            with lock as lease:
                self.client.force_release("x")
                self.until_lost(lease)
                self.raises(holdfast.LeaseLost, lock.acquire)

        self.raises(holdfast.LeaseLost, body)

    @pytest.mark.parametrize("ending", ["force", "max_hold"])
    def test_lock_can_be_taken_again_after_a_loss(self, ending: str) -> None:
        """Once a lost lease has been left, the same task takes the lock anew, with a new token."""
        hold = 0.05 if ending == "max_hold" else None
        lock = self.client.lock(
            "x", reentrant=True, ttl=self.ttl, cancel_on_loss=False, max_hold=hold
        )
        lost: list[holdfast.Lease] = []  # kept, as a variable after `with` keeps it

        def body() -> None:
            with lock as lease:
                lost.append(lease)
                if ending == "force":
                    self.client.force_release("x")
                self.until_lost(lease)

        self.raises(holdfast.LeaseLost, body)
        fresh = self.take(self.lock())
        assert fresh is not lost[0]
        assert fresh.token > lost[0].token
        assert fresh.release() is True
