"""Looking and repairing: inspect, locks and force_release show and change what is really there."""

from __future__ import annotations

import time
from typing import Any

import pytest

import holdfast.aio as holdfast

from ....model import Mode
from .base import AsyncBase


class AsyncLookingTests(AsyncBase):
    """What an operator does."""

    async def test_inspect_shows_holder_and_queue(self) -> None:
        """Token, owner, label, mode and times of the holder; who waits, in order, without token."""
        one, two = self.connect(label="first in line"), self.connect()
        lease = await self.take(self.client.lock("x", ttl=20, label="the holder"))
        waiters = [
            await self.queue(one, one.lock("x")),
            await self.queue(two, two.rwlock("x", label="second").read()),
        ]
        snapshot = await self.client.inspect("x")
        assert (snapshot.name, snapshot.kind, snapshot.limit) == ("x", "lock", 0)
        (holder,) = snapshot.holders
        assert holder.name == "x"
        assert holder.token == lease.token
        assert holder.owner == lease.owner
        assert holder.label == lease.label == "the holder"
        assert holder.mode is Mode.EXCLUSIVE
        assert 0 < holder.expires_in <= 20
        assert abs(holder.since - time.time()) < 3600, "Unix time, by the engine's clock"
        assert [(entry.label, entry.mode) for entry in snapshot.waiters] == [
            ("first in line", Mode.EXCLUSIVE),
            ("second", Mode.SHARED),
        ]
        assert all(entry.token is None for entry in snapshot.waiters)
        await lease.release()
        for waiter in waiters:
            await (await waiter.result()).release()
        assert (await self.client.inspect("x")).kind is None

    async def test_inspect_shows_kind_and_limit(self) -> None:
        """A semaphore shows its limit and all its holders, a tree its paths."""
        permits = [await self.take(self.client.semaphore("s", 3)) for _ in range(2)]
        node = await self.take(self.client.tree("t/a/b").read())
        semaphore = await self.client.inspect("s")
        assert (semaphore.kind, semaphore.limit) == ("semaphore", 3)
        assert {entry.token for entry in semaphore.holders} == {one.token for one in permits}
        tree = await self.client.inspect("t")
        assert tree.kind == "tree"
        assert [(entry.path, entry.mode) for entry in tree.holders] == [(("a", "b"), Mode.SHARED)]
        for lease in (*permits, node):
            await lease.release()

    async def test_inspect_does_not_show_the_dead(self) -> None:
        """Once its TTL is over, a holder that nobody renewed is not shown."""
        await self.die_holding(self.claim("x"))
        await self.until_idle("x")
        assert list(await self.client.locks()) == []

    async def test_label_is_the_client_s_unless_the_lock_has_one(self) -> None:
        """Who holds is said by the lock's label, else the client's, else host and process."""
        named = self.connect(label="billing é")
        async with named.lock("a") as one, named.lock("b", label="own") as two:
            assert (one.label, two.label) == ("billing é", "own")
            assert (await self.client.inspect("a")).holders[0].label == "billing é"
            assert (await self.client.inspect("b")).holders[0].label == "own"
        async with self.client.lock("c") as three:
            assert three.label

    async def test_locks_lists_by_prefix(self) -> None:
        """locks() shows all names in use, in order; a prefix narrows it down by the letter."""
        names = ["orders/1", "orders/10", "orders/2", "ordersX", "other"]
        leases = [await self.take(self.client.lock(name)) for name in names]

        async def listed(prefix: str) -> list[str]:
            return sorted(shot.name for shot in await self.client.locks(prefix))

        assert await listed("") == names
        assert await listed("orders/") == names[:3]
        assert await listed("orders/1") == names[:2]
        assert await listed("orders") == names[:4]
        assert await listed("none") == []
        for lease in leases:
            await lease.release()
        assert await listed("") == []

    async def test_locks_shows_what_inspect_shows(self) -> None:
        """Each snapshot of the list is the one that inspect gives."""
        lease = await self.take(self.client.semaphore("s", 3))
        (shot,) = await self.client.locks()
        alone = await self.client.inspect("s")
        assert (shot.name, shot.kind, shot.limit) == (alone.name, alone.kind, alone.limit)
        assert [one.owner for one in shot.holders] == [one.owner for one in alone.holders]
        await lease.release()

    async def test_force_release_by_token_spares_the_others(self) -> None:
        """Only the holder with that token goes; a token that is gone breaks nothing."""
        other = self.connect()
        one, two = [await self.take(other.semaphore("x", 3, ttl=self.ttl)) for _ in range(2)]
        assert await self.client.force_release("x", one.token) == 1
        await self.until_lost(one)
        assert await self.client.force_release("x", one.token) == 0
        assert two.held
        assert [entry.token for entry in (await self.client.inspect("x")).holders] == [two.token]
        assert await two.release() is True

    async def test_force_release_spares_a_newer_holder(self) -> None:
        """The token of a hold that is over cannot break the hold of who came after."""
        old = await self.take(self.client.lock("x"))
        await old.release()
        new = await self.take(self.client.lock("x"))
        assert await self.client.force_release("x", old.token) == 0
        assert new.held
        assert await new.release() is True

    async def test_force_release_of_an_idle_name_is_nothing(self) -> None:
        """Breaking what nobody holds breaks nothing, and says so."""
        assert await self.client.force_release("x") == 0
        assert await self.client.force_release("x", 5) == 0

    @pytest.mark.parametrize("token", ["5", 5.0, True])
    async def test_force_release_needs_a_whole_number(self, token: Any) -> None:
        """What is no token is refused before anything is broken."""
        lease = await self.take(self.client.lock("x"))
        with pytest.raises(TypeError, match="token"):
            await self.client.force_release("x", token)
        assert await lease.release() is True

    async def test_force_release_is_an_event(self) -> None:
        """Who breaks a lock tells its listeners what was broken."""
        lease = await self.take(self.connect().lock("x", ttl=self.ttl))
        heard = self.listen(self.client)
        await self.client.force_release("x", lease.token)
        (event,) = await heard.until(holdfast.events.Forced)
        assert (event.name, event.token, event.count) == ("x", lease.token, 1)
        await self.until_lost(lease)
