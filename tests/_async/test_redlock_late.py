"""A majority of Redlock nodes decides: nobody waits for the others, and nothing of them is lost."""

from __future__ import annotations

import time
from typing import Any

import pytest

import holdfast.aio as holdfast
from holdfast._async.engines.redlock_voting import RELEASE, VOTE
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.running import AsyncSpawned, elapsed
from tests._async.redlock_suite import ALL, LONG, AsyncClockedRedlockSuite, AsyncRedlockSuite

SLOW = 0.3  # seconds that a slow node takes to answer
IN_TIME = 1.0  # a node time-out that it keeps
PAIRS = 10
HOUR = 3600.0


class TestSlowNodes(AsyncRedlockSuite):
    """Nodes that answer in time, but later than the others."""

    harness = RedlockHarness()

    async def ready(self, **options: Any) -> holdfast.Client:
        """Return a client that knows all nodes, before any of them is slow."""
        client = self.connect(**{"node_timeout": IN_TIME, "ttl": LONG, **options})
        await self.warm_up(client)
        return client

    def slow_down(self, *numbers: int) -> None:
        """Let these nodes be slow."""
        for number in numbers:
            self.proxies[number].delay(SLOW)

    @pytest.mark.parametrize("slow", [(0,), (1, 3), (3, 4)])
    async def test_nobody_waits_for_them(self, slow: tuple[int, ...]) -> None:
        """Pairs take as long as a majority does; in the end slow nodes have heard of all of them,
        and none of them is taken for silent."""
        client = await self.ready()
        self.slow_down(*slow)
        started = time.monotonic()
        for number in range(PAIRS):
            await self.cycle(client, f"x{number}")
        assert elapsed(started) < PAIRS * SLOW  # with them it would be twice that
        await self.settle(client)
        for number in range(PAIRS):
            assert self.seats(f"x{number}") == []
            assert all(self.floor(node, f"x{number}") for node in ALL)
        assert [node.errors for node in client.engine.nodes] == [0] * 5  # type: ignore[attr-defined]

    async def test_a_majority_waits_for_its_slowest(self) -> None:
        """Three slow nodes of five cannot be done without."""
        client = await self.ready()
        self.slow_down(0, 2, 4)
        started = time.monotonic()
        lease = await self.take(client.lock("x"))
        assert elapsed(started) >= SLOW
        assert len(self.seats("x", lease.owner)) >= 3
        assert await lease.release() is True

    async def test_a_lease_reaches_all_nodes(self) -> None:
        """A lease that a majority granted is on the others soon after, without another word: then
        two of the majority may fail, and nobody else gets in."""
        client, other = await self.ready(), self.direct()
        self.slow_down(3, 4)
        lease = await self.take(client.lock("x"))
        await self.until_so(lambda: self.seats("x", lease.owner) == [*ALL])
        self.cut(0, 1)
        assert await other.lock("x").try_acquire() is None
        assert lease.held
        self.heal()
        assert await lease.release() is True

    async def test_the_next_one_gets_in_though_some_are_late(self) -> None:
        """What a majority has let go of is free, for any client, whatever the others still say."""
        client, other = await self.ready(), self.direct()
        await self.cycle(other)
        self.slow_down(0, 1)
        tokens = []
        for _ in range(PAIRS):
            tokens += [await self.cycle(client), await self.cycle(other)]
        assert tokens == sorted(set(tokens))

    async def test_a_hand_over_does_not_wait_for_them(self) -> None:
        """A waiter is told by a majority, and enters by it."""
        client, other = await self.ready(), await self.ready()
        lease = await self.take(client.lock("x"))
        waiter = await self.queue(other, other.lock("x"))
        await self.settle(other)
        self.slow_down(1, 2)
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True
        await self.until_free("x")

    async def test_closing_leaves_nothing_behind(self) -> None:
        """When a client is closed, its last release has reached the slow ones too."""
        client = await self.ready()
        lease = await self.take(client.lock("x"))
        await self.settle(client)
        self.slow_down(2, 3)
        assert await lease.release() is True
        await client.close()
        assert self.seats("x") == []

    async def test_tasks_side_by_side(self) -> None:
        """Many at once, with two slow nodes: nobody waits for them, everybody has its token, and
        nothing stays behind."""
        client = await self.ready()
        self.slow_down(1, 4)

        async def work(number: int) -> list[int]:
            return [await self.cycle(client, f"x{number}") for _ in range(PAIRS)]

        started = time.monotonic()
        tasks = [AsyncSpawned(work, number) for number in range(8)]
        for task in tasks:
            tokens = await task.result()
            assert tokens == sorted(set(tokens))
        assert elapsed(started) < 2 * PAIRS * SLOW
        await self.settle(client)
        for number in range(8):
            assert self.seats(f"x{number}") == []

    async def test_a_node_that_was_busy_is_made_up_for(self) -> None:
        """A node that said busy after a majority had granted has a waiter too many: it is seated
        with the next renewal, and waits no more."""
        client, direct = await self.ready(), self.direct()
        blocker, claim = self.claim("x", ttl=LONG), self.claim("x", ttl=LONG)
        await self.grant(direct, blocker)
        await self.settle(direct)
        self.unseat("x", 0, 1, 2, 3)
        await self.grant(client, claim)
        await self.settle(client)
        assert self.seats("x", claim.owner) == [0, 1, 2, 3]
        assert self.waiting(4, "x") == 1
        await direct.engine.release(blocker, 5.0)
        await client.engine.renew([claim], 5.0)
        assert self.seats("x", claim.owner) == [*ALL]
        assert self.waiting(4, "x") == 0
        assert await client.engine.release(claim, 5.0) is True

    @pytest.mark.parametrize("why", ["busy", "floor"])
    async def test_a_lease_that_a_node_refused_is_renewed_early(self, why: str) -> None:
        """A lease has a node less to lose until the next renewal, so that comes soon: when the node
        that was busy says that it is free, or at once where it has only seen a higher token."""
        client, direct = await self.ready(ttl=10 * LONG), self.direct()
        heard = self.listen(client)
        lock = client.lock("x")
        if why == "busy":
            blocker = self.claim("x", ttl=LONG)
            await self.grant(direct, blocker)
            await self.settle(direct)
            self.unseat("x", 0, 1, 2, 3)
            lease = await self.take(lock)
        else:
            self.servers[4].command("HSET", self.key("x"), "f", self.now(4) + 5_000_000)
            client.engine._nodes.hear_all()  # type: ignore[attr-defined]
            found = await lock.try_acquire()
            assert found is not None
            lease = found
        await self.settle(client)
        assert self.seats("x", lease.owner) == [0, 1, 2, 3]
        if why == "busy":
            assert self.waiting(4, "x") == 1
            await direct.engine.release(blocker, 5.0)
        await self.until_so(lambda: self.seats("x", lease.owner) == [*ALL])
        assert self.waiting(4, "x") == 0
        renewed = await heard.until(holdfast.events.Renewed)
        assert [event.token for event in renewed] == [lease.token]  # once, and not again and again
        assert await lease.release() is True

    # --- What the late ones say. ---

    async def cycle_until(self, client: holdfast.Client, so: Any, name: str = "x") -> None:
        """Acquire and release until it is so."""

        async def tried() -> bool:
            await self.cycle(client, name)
            await self.settle(client)
            return bool(so())

        await self.until(tried)

    async def test_one_that_forgot_is_found_out(self) -> None:
        """Also where it is always the last to answer, a node without its roster gets a new one."""
        client = await self.ready()
        await self.cycle(client)
        self.slow_down(4)
        self.servers[4].command("FLUSHALL")
        await self.cycle_until(client, lambda: "self" in self.roster(4))
        assert int(self.roster(4)["until"]) > self.now(4)

    @pytest.mark.parametrize("digest", [VOTE.digest, RELEASE.digest], ids=["vote", "release"])
    async def test_an_answer_that_is_lost(self, digest: bytes) -> None:
        """A slow node whose answer gets lost is told again what it must know."""
        client = await self.ready()
        self.slow_down(2)
        lost = self.proxies[2].drop_next_reply(digest)
        await self.cycle(client)
        await self.until_so(lost.is_set)
        await self.settle(client)
        node = client.engine.nodes[2]  # type: ignore[attr-defined]
        assert node.errors > 0
        await self.cycle_until(client, lambda: node.error is None and not node._owed)
        await self.until_free("x")

    async def test_a_script_that_was_forgotten(self) -> None:
        """A slow node that does not know the scripts any more learns them, and lets go of what it
        was asked to."""
        client = await self.ready()
        lease = await self.take(client.lock("x"))
        await self.settle(client)
        self.slow_down(2)
        self.servers[2].command("SCRIPT", "FLUSH")
        assert await lease.release() is True
        await self.settle(client)
        assert self.seats("x") == [2]
        client.engine._nodes._attentive = False  # type: ignore[attr-defined]  # as after a vote
        await self.cycle_until(client, lambda: self.seats("x") == [], "other")
        held = await self.take(client.lock("y"))
        await self.settle(client)
        assert self.seats("y", held.owner) == [*ALL]
        assert await held.release() is True

    async def test_one_that_was_started_again(self) -> None:
        """A slow node that is started again while it owes an answer is used again."""
        client = await self.ready(max_ttl=LONG)
        self.slow_down(1)
        lease = await self.take(client.lock("x"))
        self.servers[1].restart(keep_data=False)
        assert await lease.release() is True
        self.heal()
        before = client.engine.nodes[1].greeting.run_id  # type: ignore[attr-defined]
        await self.cycle_until(
            client,
            lambda: client.engine.nodes[1].greeting.run_id != before,  # type: ignore[attr-defined]
        )


class TestLateClocks(AsyncClockedRedlockSuite):
    """Slow nodes beside nodes whose clocks are set."""

    async def test_a_yes_that_is_struck_out(self) -> None:
        """Where a yes of the majority does not count after all (on_clock_step="block"), the slow
        ones are heard: they make up for it."""
        client = self.connect(node_timeout=IN_TIME, ttl=LONG, on_clock_step="block", max_ttl=60)
        await self.warm_up(client)
        for number in (3, 4):
            self.proxies[number].delay(SLOW)
        self.servers[1].step_clock(HOUR)
        lease = await self.take(client.lock("x"))
        assert set(self.seats("x", lease.owner)) >= {0, 2}
        assert len(set(self.seats("x", lease.owner)) - {1}) >= 3
        assert await lease.release() is True
        await self.settle(client)
        await self.until_free("x")

    async def test_a_late_answer_tells_the_time(self) -> None:
        """A slow node whose clock was set is an event like any other's."""
        client = self.connect(node_timeout=IN_TIME, ttl=LONG)
        await self.warm_up(client)
        heard = self.listen(client)
        self.proxies[2].delay(SLOW)
        self.servers[2].step_clock(HOUR)
        await self.cycle(client)
        await self.settle(client)
        (seen,) = {event.node for event in await heard.until(holdfast.events.ClockStep)}
        assert seen == client.engine.nodes[2].location  # type: ignore[attr-defined]
