"""(Generated from _async/conformance/group.py by tools/unasync.py: do not edit.) Several locks as one: in one order, all or none, lost as soon as one is (S28)."""

from __future__ import annotations

import pytest

import holdfast

from ...._concurrency import sleep
from ....model import Reason
from ...running import Body, Spawned
from .base import Base

ROUNDS = 8


class GroupTests(Base):
    """all_of."""

    def test_all_are_taken_and_given_back(self) -> None:
        """The group holds every part, in the caller's order, and releases every part."""
        locks = [self.client.lock(name, ttl=20) for name in ("b", "a", "c")]
        group = self.take(self.client.all_of(*locks))
        assert [part.name for part in group.parts] == ["b", "a", "c"]
        assert group.held
        assert not group.suspended
        assert group.lost_reason is None
        assert 0 < group.remaining() <= min(part.remaining() + 0.1 for part in group.parts)
        group.ensure_held()
        group.extend()
        assert [shot.name for shot in self.client.locks()] == ["a", "b", "c"]
        assert group.release() is True
        assert group.released
        assert not group.held
        assert group.release() is False
        assert list(self.client.locks()) == []

    def test_locks_are_taken_in_one_order(self) -> None:
        """Whatever order the caller names them in, they are taken by name: no deadlock."""
        heard = self.listen(self.client)
        for number, names in enumerate(("abc", "cba", "bca")):
            group = self.take(self.client.all_of(*map(self.client.lock, names)))
            acquired = heard.until(holdfast.events.Acquired, 3 * number + 3)
            assert [event.name for event in acquired[-3:]] == ["a", "b", "c"]
            group.release()

        def work(*names: str) -> None:
            for _ in range(ROUNDS):
                group = self.take(self.client.all_of(*map(self.client.lock, names)))
                sleep(0)
                assert group.release() is True

        callers = [Spawned(work, *names) for names in ("abc", "cba", "bca", "ba")]
        for caller in callers:
            caller.result()

    def test_all_or_none(self) -> None:
        """If one part stays busy, None, and what was taken of the others is free again."""
        other = self.connect()
        busy = self.take(other.lock("b"))
        group = self.client.all_of(*map(self.client.lock, "abc"))
        assert group.try_acquire() is None
        assert group.acquire(timeout=2 * self.harness.brief) is None
        assert group.locked()
        shots = self.client.locks()
        assert [(shot.name, len(shot.waiters)) for shot in shots] == [("b", 0)]
        busy.release()
        assert not group.locked()
        lease = self.take(group)
        assert lease.release() is True

    def test_group_waits_for_its_parts(self) -> None:
        """A group gets in once every part is free, however late each becomes so."""
        other = self.connect()
        first, second = self.take(other.lock("a")), self.take(other.lock("b"))
        waiter = self.queue(self.client, self.client.all_of(*map(self.client.lock, "ab")))
        first.release()
        assert not waiter.done
        second.release()
        group = waiter.result()
        assert group.held
        group.release()

    def test_one_loss_is_the_loss_of_all(self) -> None:
        """When one part is lost the group is, though others are held; releasing it frees all."""
        group = self.take(
            self.client.all_of(*(self.client.lock(name, ttl=self.ttl) for name in "ab"))
        )
        self.client.force_release("b")
        self.until_lost(group)
        assert not group.held
        assert group.remaining() == 0
        assert group.lost_reason is group.parts[1].lost_reason
        assert group.parts[0].held
        error = self.raises(holdfast.LeaseLost, group.ensure_held)
        assert error.name == "b"
        group.release()
        assert list(self.client.locks()) == []

    def test_body_is_told_of_a_loss(self) -> None:
        """The body of a group is told when one part is lost, and leaving raises for that part."""
        group = self.client.all_of(*(self.client.lock(name, ttl=self.ttl) for name in "ab"))

        def body() -> None:
            with group as lease:
                self.client.force_release("a")
                Body.work_on(lease)

        error = self.raises(holdfast.LeaseLost, body)
        assert error.name == "a"
        assert error.reason in (Reason.FORCED, Reason.EXPIRED)
        assert list(self.client.locks()) == []

    def test_group_has_no_token(self) -> None:
        """There is no common token: asking for one says where the parts' tokens are."""
        with self.client.all_of(*map(self.client.lock, "ab")) as group:
            with pytest.raises(holdfast.NotSupported, match="parts"):
                _ = group.token
            assert all(part.token > 0 for part in group.parts)

    def test_duplicates_are_refused(self) -> None:
        """The same lock twice would wait for itself: ValueError, whatever its kind."""
        for again in (self.client.lock("a"), self.client.rwlock("a").read()):
            with pytest.raises(ValueError, match="'a'"):
                self.client.all_of(self.client.lock("a"), self.client.lock("b"), again)
        with pytest.raises(ValueError, match="at least one"):
            self.client.all_of()

    def test_parts_of_several_kinds_and_clients(self) -> None:
        """Locks of any kind, and of other clients, go together."""
        other = self.connect(namespace=f"{self.namespace}-2")
        group = self.client.all_of(
            other.lock("a"),
            self.client.semaphore("s", 2),
            self.client.tree("t/u").write(),
            self.client.rwlock("r").read(),
            self.client.lock("a"),
        )
        with group as lease:
            assert lease.held
            assert [part.domain for part in lease.parts].count(lease.parts[0].domain) == 1
        assert list(self.client.locks()) == []
        assert list(other.locks()) == []

    def test_group_budget_is_the_shortest_of_its_locks(self) -> None:
        """Without a time-out of the call, the shortest of the parts' own counts for all."""
        busy = self.take(self.connect().lock("b"))
        brief = self.client.lock("b", timeout=self.harness.brief)
        group = self.client.all_of(self.client.lock("a"), brief)
        assert group.acquire() is None
        busy.release()
