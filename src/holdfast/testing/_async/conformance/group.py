"""Several locks as one: in one order, all or none, lost as soon as one is (S28)."""

from __future__ import annotations

import pytest

import holdfast.aio as holdfast

from ...._concurrency import asleep
from ....model import Reason
from ...running import AsyncBody, AsyncSpawned
from .base import AsyncBase

ROUNDS = 8


class AsyncGroupTests(AsyncBase):
    """all_of."""

    async def test_all_are_taken_and_given_back(self) -> None:
        """The group holds every part, in the caller's order, and releases every part."""
        locks = [self.client.lock(name, ttl=20) for name in ("b", "a", "c")]
        group = await self.take(self.client.all_of(*locks))
        assert [part.name for part in group.parts] == ["b", "a", "c"]
        assert group.held
        assert not group.suspended
        assert group.lost_reason is None
        assert 0 < group.remaining() <= min(part.remaining() + 0.1 for part in group.parts)
        await group.ensure_held()
        await group.extend()
        assert [shot.name for shot in await self.client.locks()] == ["a", "b", "c"]
        assert await group.release() is True
        assert group.released
        assert not group.held
        assert await group.release() is False
        assert list(await self.client.locks()) == []

    async def test_locks_are_taken_in_one_order(self) -> None:
        """Whatever order the caller names them in, they are taken by name: no deadlock."""
        heard = self.listen(self.client)
        for number, names in enumerate(("abc", "cba", "bca")):
            group = await self.take(self.client.all_of(*map(self.client.lock, names)))
            acquired = await heard.until(holdfast.events.Acquired, 3 * number + 3)
            assert [event.name for event in acquired[-3:]] == ["a", "b", "c"]
            await group.release()

        async def work(*names: str) -> None:
            for _ in range(ROUNDS):
                group = await self.take(self.client.all_of(*map(self.client.lock, names)))
                await asleep(0)
                assert await group.release() is True

        callers = [AsyncSpawned(work, *names) for names in ("abc", "cba", "bca", "ba")]
        for caller in callers:
            await caller.result()

    async def test_all_or_none(self) -> None:
        """If one part stays busy, None, and what was taken of the others is free again."""
        other = self.connect()
        busy = await self.take(other.lock("b"))
        group = self.client.all_of(*map(self.client.lock, "abc"))
        assert await group.try_acquire() is None
        assert await group.acquire(timeout=2 * self.harness.brief) is None
        assert await group.locked()
        shots = await self.client.locks()
        assert [(shot.name, len(shot.waiters)) for shot in shots] == [("b", 0)]
        await busy.release()
        assert not await group.locked()
        lease = await self.take(group)
        assert await lease.release() is True

    async def test_group_waits_for_its_parts(self) -> None:
        """A group gets in once every part is free, however late each becomes so."""
        other = self.connect()
        first, second = await self.take(other.lock("a")), await self.take(other.lock("b"))
        waiter = await self.queue(self.client, self.client.all_of(*map(self.client.lock, "ab")))
        await first.release()
        assert not waiter.done
        await second.release()
        group = await waiter.result()
        assert group.held
        await group.release()

    async def test_one_loss_is_the_loss_of_all(self) -> None:
        """When one part is lost the group is, though others are held; releasing it frees all."""
        group = await self.take(
            self.client.all_of(*(self.client.lock(name, ttl=self.ttl) for name in "ab"))
        )
        await self.client.force_release("b")
        await self.until_lost(group)
        assert not group.held
        assert group.remaining() == 0
        assert group.lost_reason is group.parts[1].lost_reason
        assert group.parts[0].held
        error = await self.raises(holdfast.LeaseLost, group.ensure_held)
        assert error.name == "b"
        await group.release()
        assert list(await self.client.locks()) == []

    async def test_body_is_told_of_a_loss(self) -> None:
        """The body of a group is told when one part is lost, and leaving raises for that part."""
        group = self.client.all_of(*(self.client.lock(name, ttl=self.ttl) for name in "ab"))

        async def body() -> None:
            async with group as lease:
                await self.client.force_release("a")
                await AsyncBody.work_on(lease)

        error = await self.raises(holdfast.LeaseLost, body)
        assert error.name == "a"
        assert error.reason in (Reason.FORCED, Reason.EXPIRED)
        assert list(await self.client.locks()) == []

    async def test_group_has_no_token(self) -> None:
        """There is no common token: asking for one says where the parts' tokens are."""
        async with self.client.all_of(*map(self.client.lock, "ab")) as group:
            with pytest.raises(holdfast.NotSupported, match="parts"):
                _ = group.token
            assert all(part.token > 0 for part in group.parts)

    async def test_duplicates_are_refused(self) -> None:
        """The same lock twice would wait for itself: ValueError, whatever its kind."""
        for again in (self.client.lock("a"), self.client.rwlock("a").read()):
            with pytest.raises(ValueError, match="'a'"):
                self.client.all_of(self.client.lock("a"), self.client.lock("b"), again)
        with pytest.raises(ValueError, match="at least one"):
            self.client.all_of()

    async def test_parts_of_several_kinds_and_clients(self) -> None:
        """Locks of any kind, and of other clients, go together."""
        other = self.connect(namespace=f"{self.namespace}-2")
        group = self.client.all_of(
            other.lock("a"),
            self.client.semaphore("s", 2),
            self.client.tree("t/u").write(),
            self.client.rwlock("r").read(),
            self.client.lock("a"),
        )
        async with group as lease:
            assert lease.held
            assert [part.domain for part in lease.parts].count(lease.parts[0].domain) == 1
        assert list(await self.client.locks()) == []
        assert list(await other.locks()) == []

    async def test_group_budget_is_the_shortest_of_its_locks(self) -> None:
        """Without a time-out of the call, the shortest of the parts' own counts for all."""
        busy = await self.take(self.connect().lock("b"))
        brief = self.client.lock("b", timeout=self.harness.brief)
        group = self.client.all_of(self.client.lock("a"), brief)
        assert await group.acquire() is None
        await busy.release()
