"""Redlock nodes that forget (S21): they stay out until whatever they granted is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.clocks import boot_clock
from holdfast.model import Grant
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.running import AsyncSpawned, elapsed
from tests._async.redlock_suite import ALL, AsyncRedlockSuite

OUT = 2.0  # max_ttl
CROWD = 20


class TestAmnesia(AsyncRedlockSuite):
    """Nodes that keep nothing, or an old copy."""

    harness = RedlockHarness()

    def brief(self, **options: Any) -> holdfast.Client:
        """Return a client whose forgetful nodes are not out for long."""
        return self.patient(**{"ttl": OUT, "max_ttl": OUT, **options})

    def forget(self, number: int, way: str) -> None:
        """Let a node forget everything, or what came since its last copy."""
        if way == "flushed":
            self.servers[number].command("FLUSHALL")
        else:
            self.servers[number].restart(keep_data=way == "restarted with an old copy")

    def out(self, number: int) -> float:
        """Return for how many seconds more a node says that it grants nothing."""
        return (int(self.roster(number)["until"]) - self.now(number)) / 1e6

    async def test_a_known_name_is_five_calls_inside_scripts(self) -> None:
        """On each node the time, a look and a write to take it, a look and a write to give it back:
        a record that was granted before in this run needs no look at the roster."""
        client = self.patient()
        await self.cycle(client)
        await self.settle(client)
        self.forget_calls()
        await self.cycle(client)
        await self.settle(client)
        for number in ALL:
            found = [self.calls(number, name) for name in ("time", "hmget", "hset", "hdel")]
            assert found == [1, 2, 1, 1]

    async def test_a_pair_is_twenty_words(self) -> None:
        """Each word is read, copied and interned by a server before the script begins."""
        client = self.patient()
        await self.cycle(client)
        server = self.servers[0]
        server.command("CONFIG", "SET", "slowlog-log-slower-than", "0")
        try:
            await self.settle(client)
            server.command("SLOWLOG", "RESET")
            await self.cycle(client)
            await self.settle(client)
            calls = [entry[3] for entry in server.command("SLOWLOG", "GET", "20")]
        finally:
            server.command("CONFIG", "SET", "slowlog-log-slower-than", "10000")
        assert [len(words) for words in calls if words[0] == "EVALSHA"] == [8, 12]

    async def test_a_record_that_is_there_was_not_forgotten(self) -> None:
        """A node that has lost its roster and nothing else goes on with the names it knows, and
        grants no others for max_ttl; of an earlier run it knows none."""
        client = self.brief()
        await self.cycle(client)
        await self.settle(client)
        self.servers[0].command("DEL", self.roster_key)
        held = await self.take(client.lock("x"))
        await self.settle(client)
        assert self.seats("x") == [*ALL]
        assert await held.release() is True
        client.engine._nodes.hear_all()  # type: ignore[attr-defined]
        other = await self.take(client.lock("y"))
        await self.settle(client)
        assert self.seats("y") == [1, 2, 3, 4]
        assert 0 < self.out(0) <= OUT
        assert await other.release() is True
        await self.settle(client)
        self.servers[1].restart(keep_data=True)
        again = await self.take(client.lock("x"))
        await self.settle(client)
        assert 1 not in self.seats("x")
        assert await again.release() is True

    @pytest.mark.parametrize("way", ["flushed", "restarted", "restarted with an old copy"])
    async def test_nobody_gets_what_a_node_forgot(self, way: str) -> None:
        """A lock on a bare majority of which one forgets is not given twice, though two nodes that
        never knew of it are back; later that node votes again."""
        first, second, bystander = self.brief(), self.brief(), self.brief(namespace="bystander")
        for node in second.engine.nodes:  # type: ignore[attr-defined]
            node.may_listen = False  # so it meets a new server by its vote, and not before
        for client in (first, second, bystander):
            await self.cycle(client)
            await self.settle(client)
        self.servers[2].command("SAVE")
        self.cut(3, 4)
        grant = await first.engine.claim(self.claim("x", ttl=OUT), 5.0)
        assert isinstance(grant, Grant)
        assert self.seats("x") == [0, 1, 2]
        forgot = time.monotonic()
        self.forget(2, way)
        await asleep(0.25)  # what was held up is not wanted any more
        self.heal()
        await self.cycle_with_all(bystander)  # the node knows the scripts again

        async def granted() -> bool:
            try:
                lease = await second.lock("x").try_acquire()
            except holdfast.EngineUnavailable:
                return False
            if lease is None:
                return False
            assert boot_clock() >= grant.not_after
            assert lease.token > grant.token
            await lease.release()
            return True

        await self.until(granted)

        async def votes_again() -> bool:
            lease = await self.take(second.lock("y"))
            seats = self.seats("y")
            await lease.release()
            return 2 in seats

        await self.until(votes_again)
        assert elapsed(forgot) >= OUT
        assert self.out(2) <= 0

    async def test_one_that_forgets_is_out_for_all_and_the_others_go_on(self) -> None:
        """A minority that forgets stops nobody; a majority that does is named in the error."""
        client = self.brief(connect_timeout=0.3)
        await self.cycle(client)
        await self.settle(client)
        for number in (0, 1):
            self.forget(number, "flushed")
            await self.cycle_with_all(client)
            assert 0 < self.out(number) <= OUT
        self.forget(2, "flushed")
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "3 of 5 nodes have forgotten what they granted" in str(error)

    async def test_a_holder_is_told_when_most_of_its_nodes_forgot(self) -> None:
        """Three of five say that nobody holds: the lease is lost at the next renewal."""
        client = self.brief()
        lease = await self.take(client.lock("x"))
        await self.settle(client)
        for number in (0, 1, 2):
            self.forget(number, "flushed")
        await self.until_lost(lease)
        assert lease.lost_reason == "expired"

    async def test_many_first_users_at_once(self) -> None:
        """Twenty that use a new namespace at the same time all get in, and keep no node out."""
        clients = [self.patient(max_ttl=300) for _ in range(4)]

        async def use(number: int) -> None:
            lease = await self.take(clients[number % 4].lock(f"x{number}"))
            assert await lease.release() is True

        tasks = [AsyncSpawned(use, number) for number in range(CROWD)]
        for task in tasks:
            await task.result()
        await self.cycle(clients[0])
        rosters = [self.roster(number) for number in ALL]
        assert [self.out(number) > 0 for number in ALL] == [False] * 5
        assert {roster["max_ttl"] for roster in rosters} == {"300000000"}
        assert len({roster["self"] for roster in rosters}) == 5

    async def test_nodes_that_say_nothing_of_themselves(self) -> None:
        """Where INFO is not allowed a restart cannot be told: who has no roster stays out."""
        for server in self.servers:
            server.command("ACL", "SETUSER", "mute", "on", ">word", "~*", "&*", "+@all", "-info")
        urls = [f"redis://mute:word@127.0.0.1:{server.port}" for server in self.servers]
        client = self.reach(urls, ttl=OUT, max_ttl=OUT, node_timeout=0.5)
        await self.cycle(client)
        await self.settle(client)
        self.forget(1, "flushed")
        await self.cycle_with_all(client)
        assert 0 < self.out(1) <= OUT

    # --- While it is found out. ---

    def meddle(self, client: holdfast.Client, *actions: Callable[[], None]) -> None:
        """Do one of these each time before nodes are told to join, as long as there are any."""
        nodes: Any = client.engine._nodes  # type: ignore[attr-defined]
        ask, left = nodes.ask, iter(actions)

        async def listen(question: Any, *args: Any, **options: Any) -> Any:
            if "join" in question._template._values:
                next(left, lambda: None)()
            return await ask(question, *args, **options)

        nodes.ask = listen

    async def test_a_node_that_forgets_while_others_are_enrolled(self) -> None:
        """One that had its roster when all were asked, and has forgotten when they are told of a
        newcomer, is not enrolled as one that remembers."""
        client = self.brief()
        await self.cycle(client)
        await self.settle(client)
        self.forget(4, "flushed")  # will be enrolled anew
        self.meddle(client, lambda: self.forget(2, "flushed"))
        await self.cycle_with_all(client)
        await self.cycle_with_all(client)
        assert 0 < self.out(2) <= OUT
        assert 0 < self.out(4) <= OUT

    async def test_a_client_that_dies_while_it_enrols(self) -> None:
        """A newcomer is enrolled after the others know of it, not before: else, if the client died
        in between, it could forget and nobody would miss it."""
        self.cut(0)
        await self.cycle(self.brief())
        self.heal()
        dying = self.brief()

        def die() -> None:
            raise holdfast.OutcomeUnknown("killed")

        self.meddle(dying, lambda: None, die)
        await self.cycle_with_all(dying)
        run = dying.engine.nodes[0].greeting.run_id  # type: ignore[attr-defined]
        assert "self" not in self.roster(0)
        assert all(f"run:{run}" in self.roster(number) for number in (1, 2, 3, 4))


class TestDurableNodes(AsyncRedlockSuite):
    """Nodes that write everything to disk before they answer."""

    harness = RedlockHarness(persist=True)

    async def test_a_restart_with_all_data_keeps_nobody_out(self) -> None:
        """What came back with everything votes at once, and still knows who holds."""
        client = self.patient(max_ttl=300)
        lease = await self.take(client.lock("x"))
        await self.settle(client)
        for number in (1, 2):
            self.servers[number].restart(keep_data=True)
        assert await self.patient(max_ttl=300).lock("x").try_acquire() is None

        async def votes() -> bool:
            lease = await self.take(client.lock("y"))
            seats = self.seats("y")
            await lease.release()
            return seats == [*ALL]

        await self.until(votes)
        assert self.seats("x", lease.owner) == [*ALL]
        assert await lease.release() is True

    async def test_a_restart_does_not_end_a_quarantine(self) -> None:
        """A node that was flushed remembers that it must stay out, and does so after a restart."""
        client = self.patient(max_ttl=300)
        await self.cycle(client)
        await self.settle(client)
        self.servers[3].command("FLUSHALL")
        await self.cycle_with_all(client)
        until = self.roster(3)["until"]
        self.servers[3].restart(keep_data=True)

        async def known() -> bool:
            await self.cycle(client)
            run: str = client.engine.nodes[3].greeting.run_id  # type: ignore[attr-defined]
            return self.roster(3)["self"] == run

        await self.until(known)
        assert self.roster(3)["until"] == until
