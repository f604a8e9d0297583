"""Tokens of a Redlock rise through everything that can happen to a minority of its nodes (S20)."""

from __future__ import annotations

import math

import pytest

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.model import Grant
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.running import AsyncSpawned
from tests._async.redlock_suite import ALL, AsyncClockedRedlockSuite, AsyncRedlockSuite

HOUR = 3600.0
SECOND = 1_000_000


class TestTokens(AsyncRedlockSuite):
    """Nodes that keep nothing."""

    harness = RedlockHarness()

    async def test_through_losses_of_memory(self) -> None:
        """Release, the death of a holder, expiry, a flush and an empty restart, of one client and
        of another: every token is above all before."""
        clients = [self.patient(max_ttl=2, ttl=2), self.patient(max_ttl=2, ttl=2)]
        tokens = [await self.cycle(client) for client in clients * 2]
        grant = await clients[0].engine.claim(self.claim("x", ttl=1), 5.0)
        assert isinstance(grant, Grant)
        tokens.append(grant.token)  # nobody renews or releases it: its holder is dead
        tokens.append(await self.cycle(clients[1]))
        self.servers[0].command("FLUSHALL")
        tokens += [await self.cycle(client) for client in clients]
        self.servers[1].restart(keep_data=False)
        tokens += [await self.cycle(client) for client in clients * 2]

        async def all_vote() -> bool:
            lease = await self.take(clients[0].lock("x"))
            tokens.append(lease.token)
            seats = self.seats("x")
            await lease.release()
            return seats == [*ALL]

        await self.until(all_vote)  # by a majority that has never seen the first ones
        self.cut(2, 3)
        tokens += [await self.cycle(client) for client in clients]
        assert tokens == sorted(set(tokens))

    async def test_by_any_majority(self) -> None:
        """Grants by majorities that share a single node are in order, whatever each one saw."""
        client = self.patient(node_timeout=0.1)
        await self.warm_up(client)
        tokens = []
        for away in ((3, 4), (0, 1), (2, 3)):
            self.cut(*away)
            fresh = self.patient(node_timeout=0.1)
            tokens += [await self.cycle(fresh), await self.cycle(client)]
            await asleep(0.25)  # what was held up is not wanted any more
            self.heal()
        assert tokens == sorted(set(tokens))

    async def test_of_a_client_that_knows_the_clocks_badly(self) -> None:
        """Nodes accept a token only above their floor, whatever a client believes of their clocks:
        it proposes again, above what they tell."""
        client, wrong = self.patient(), self.patient()
        tokens = [await self.cycle(client), await self.cycle(wrong)]
        voting = wrong.engine._voting  # type: ignore[attr-defined]
        for seconds in (-10, -3000, 10):
            voting._ahead, voting._ahead_until = voting._ahead + seconds, math.inf
            for _ in range(3):
                voting._floors.clear()
                tokens += [await self.cycle(client), await self.cycle(wrong)]
        assert tokens == sorted(set(tokens))

    async def test_they_do_not_run_ahead_of_the_clocks(self) -> None:
        """However slow answers are, tokens stay with the nodes' clocks: else a node that forgot
        could be given a lower one."""
        client = self.patient()
        await self.cycle(client)
        for delay in (0.3, 0.0):
            for proxy in self.proxies:
                proxy.delay(delay)
            lease = await self.take(client.lock("x"))
            assert abs(lease.token - self.now(0)) < SECOND
            assert await lease.release() is True
        early, late = self.now(0), await self.cycle(client)
        assert early - SECOND / 50 < late < self.now(0) + SECOND / 50


class TestRestarts(AsyncRedlockSuite):
    """Nodes that keep everything."""

    harness = RedlockHarness(persist=True)

    async def test_one_after_the_other(self) -> None:
        """While all nodes are restarted in turn, a lease is held all the time under one token, and
        the tokens of others rise."""
        client, other = self.patient(ttl=4), self.patient(ttl=4)
        lease = await self.take(client.lock("held"))
        tokens = [await self.cycle(other)]
        for server in self.servers:
            server.restart(keep_data=True)
            tokens += [await self.cycle(one) for one in (client, other)]
            assert await other.lock("held").try_acquire() is None
        await lease.extend()
        assert lease.held
        assert await lease.release() is True
        second = await self.take(other.lock("held"))
        assert second.token > lease.token
        assert await second.release() is True
        assert tokens == sorted(set(tokens))

    async def test_all_at_once(self) -> None:
        """After a power cut nothing is forgotten: who held still holds, and tokens go on."""
        client, other = self.patient(ttl=6), self.patient(ttl=6)
        lease = await self.take(client.lock("held"))
        first = await self.cycle(other)
        waiting = AsyncSpawned(self.take, other.lock("held"))
        self.harness.restart(keep_data=True)

        async def works() -> bool:
            try:
                return await self.cycle(client) > first
            except holdfast.EngineUnavailable:
                return False

        await self.until(works)
        await lease.extend()
        assert not waiting.done
        assert await lease.release() is True
        assert await (await waiting.result()).release() is True


class TestClocks(AsyncClockedRedlockSuite):
    """Nodes whose clocks can be set."""

    @pytest.mark.parametrize("step", [HOUR, -HOUR])
    async def test_one_that_is_set(self, step: float) -> None:
        """A clock an hour ahead or behind moves no token, keeps no lock longer than its TTL, and is
        an event; the lease that was there is held by the others."""
        client, other = self.patient(ttl=2), self.patient(ttl=2)
        heard = self.listen(client)
        lease = await self.take(client.lock("held"))
        tokens = [await self.cycle(one) for one in (client, other)]
        self.servers[1].step_clock(step)
        tokens += [await self.cycle(one) for one in (client, other) * 2]
        (seen,) = {event.node for event in await heard.until(holdfast.events.ClockStep)}
        assert seen == client.engine.nodes[1].location  # type: ignore[attr-defined]
        assert abs(tokens[-1] - self.now(0)) < SECOND
        assert lease.held
        assert await other.lock("held").try_acquire() is None
        await self.grant(client, self.claim("dead", ttl=1))  # nobody renews it
        second = await self.take(other.lock("dead"))
        assert await second.release() is True
        self.servers[1].step_clock(0)
        tokens += [await self.cycle(one) for one in (client, other)]
        assert tokens == sorted(set(tokens))
        assert lease.held
        assert await lease.release() is True

    async def test_one_that_is_set_and_kept_out(self) -> None:
        """With on_clock_step="block" a node whose clock was set is not counted on."""
        client = self.patient(on_clock_step="block", max_ttl=60)
        await self.cycle(client)
        self.servers[4].step_clock(HOUR)
        await self.cycle(client)
        await self.settle(client)
        lease = await self.take(client.lock("x"))
        await self.settle(client)
        assert self.seats("x", lease.owner) == [0, 1, 2, 3]
        assert await lease.release() is True
        await self.settle(client)
        for number in (2, 3):
            self.servers[number].step_clock(-5)  # they would still grant
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        text = str(error)
        assert "3 of 5 nodes are kept out" in text or text.count("its clock was set") == 3
        await self.until_free("x")
