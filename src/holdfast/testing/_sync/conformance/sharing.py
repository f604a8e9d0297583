"""(Generated from _async/conformance/sharing.py by tools/unasync.py: do not edit.) One Lock object in many hands: each task or thread leaves what it entered (S27)."""

from __future__ import annotations

import holdfast

from ...._concurrency import Event, sleep
from ...running import Spawned
from .base import Base

WORKERS = 6
ROUNDS = 5


class SharingTests(Base):
    """`with lock` on a shared description."""

    def test_many_enter_the_same_object(self) -> None:
        """Tasks or threads that share one Lock exclude each other and each leaves its own."""
        lock = self.client.lock("x", timeout=self.harness.patience)
        counter = 0
        tokens: list[int] = []

        def work() -> None:
            nonlocal counter
            for _ in range(ROUNDS):
                with lock as lease:
                    seen = counter
                    sleep(0)
                    assert lease.held
                    counter = seen + 1
                    tokens.append(lease.token)

        workers = [Spawned(work) for _ in range(WORKERS)]
        for worker in workers:
            worker.result()
        assert counter == WORKERS * ROUNDS
        assert tokens == sorted(set(tokens))
        assert (self.client.inspect("x")).kind is None

    def test_holders_of_one_object_leave_their_own(self) -> None:
        """Several inside at once, through one semaphore object: each exit frees its own permit."""
        lock = self.client.semaphore("x", 3)
        leave = [Event() for _ in range(3)]
        inside = [Event() for _ in range(3)]
        leases: dict[int, holdfast.Lease] = {}

        def stay(number: int) -> None:
            with lock as lease:
                leases[number] = lease
                inside[number].set()
                assert leave[number].wait(self.harness.patience)

        stays = [Spawned(stay, number) for number in range(3)]
        for event in inside:
            assert event.wait(self.harness.patience)
        for number in (1, 0, 2):
            leave[number].set()
            stays[number].result()
            assert leases[number].released
            assert sum(lease.held for lease in leases.values()) == 2 - [1, 0, 2].index(number)

    def test_nested_in_one_task(self) -> None:
        """One task may be inside a semaphore twice through one object; exits go inside out."""
        lock = self.client.semaphore("x", 2)
        with lock as outer:
            with lock as inner:
                assert inner is not outer
            assert inner.released
            assert outer.held
        assert outer.released

    def test_foreign_exit_takes_the_only_entry(self) -> None:
        """A task or thread that did not enter may leave, if exactly one entry is open."""
        lock = self.client.lock("x")
        lease = Spawned(lock.__enter__).result()
        assert lease.held
        lock.__exit__(None, None, None)
        assert lease.released
        assert (self.client.inspect("x")).kind is None

    def test_foreign_exit_from_many_is_refused(self) -> None:
        """With several entries open it is unclear which: the error says what to use instead."""
        lock = self.client.semaphore("x", 2)
        entered, leave = Event(), Event()

        def stay() -> None:
            with lock:
                with lock:
                    entered.set()
                    assert leave.wait(self.harness.patience)

        staying = Spawned(stay)
        assert entered.wait(self.harness.patience)
        error = self.raises(holdfast.LockError, lock.__exit__, None, None, None)
        assert "lock.acquire() as lease" in str(error)
        assert len((self.client.inspect("x")).holders) == 2, "nothing was freed"
        leave.set()
        staying.result()

    def test_exit_without_entry_is_refused(self) -> None:
        """Leaving what nobody entered is an error, not a release."""
        lock = self.client.lock("x")
        lease = self.take(lock)
        self.raises(holdfast.LockError, lock.__exit__, None, None, None)
        assert lease.held
        lease.release()

    def test_lease_may_be_left_by_another(self) -> None:
        """`with lock.acquire() as lease`: the lease itself may be handed to whoever leaves it."""
        lease = Spawned(self.take, self.client.lock("x")).result()
        with lease as same:
            assert same is lease
        assert lease.released
