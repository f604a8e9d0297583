"""(Generated from _async/test_redlock_tokens.py by tools/unasync.py: do not edit.) Tokens of a Redlock rise through everything that can happen to a minority of its nodes (S20)."""

from __future__ import annotations

import math

import pytest

import holdfast
from holdfast._concurrency import sleep
from holdfast.model import Grant
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.running import Spawned
from tests._sync.redlock_suite import ALL, ClockedRedlockSuite, RedlockSuite

HOUR = 3600.0
SECOND = 1_000_000


class TestTokens(RedlockSuite):
    """Nodes that keep nothing."""

    harness = RedlockHarness()

    def test_through_losses_of_memory(self) -> None:
        """Release, the death of a holder, expiry, a flush and an empty restart, of one client and
        of another: every token is above all before."""
        clients = [self.patient(max_ttl=2, ttl=2), self.patient(max_ttl=2, ttl=2)]
        tokens = [self.cycle(client) for client in clients * 2]
        grant = clients[0].engine.claim(self.claim("x", ttl=1), 5.0)
        assert isinstance(grant, Grant)
        tokens.append(grant.token)  # nobody renews or releases it: its holder is dead
        tokens.append(self.cycle(clients[1]))
        self.servers[0].command("FLUSHALL")
        tokens += [self.cycle(client) for client in clients]
        self.servers[1].restart(keep_data=False)
        tokens += [self.cycle(client) for client in clients * 2]

        def all_vote() -> bool:
            lease = self.take(clients[0].lock("x"))
            tokens.append(lease.token)
            seats = self.seats("x")
            lease.release()
            return seats == [*ALL]

        self.until(all_vote)  # by a majority that has never seen the first ones
        self.cut(2, 3)
        tokens += [self.cycle(client) for client in clients]
        assert tokens == sorted(set(tokens))

    def test_by_any_majority(self) -> None:
        """Grants by majorities that share a single node are in order, whatever each one saw."""
        client = self.patient(node_timeout=0.1)
        self.warm_up(client)
        tokens = []
        for away in ((3, 4), (0, 1), (2, 3)):
            self.cut(*away)
            fresh = self.patient(node_timeout=0.1)
            tokens += [self.cycle(fresh), self.cycle(client)]
            sleep(0.25)  # what was held up is not wanted any more
            self.heal()
        assert tokens == sorted(set(tokens))

    def test_of_a_client_that_knows_the_clocks_badly(self) -> None:
        """Nodes accept a token only above their floor, whatever a client believes of their clocks:
        it proposes again, above what they tell."""
        client, wrong = self.patient(), self.patient()
        tokens = [self.cycle(client), self.cycle(wrong)]
        voting = wrong.engine._voting  # type: ignore[attr-defined]
        for seconds in (-10, -3000, 10):
            voting._ahead, voting._ahead_until = voting._ahead + seconds, math.inf
            for _ in range(3):
                voting._floors.clear()
                tokens += [self.cycle(client), self.cycle(wrong)]
        assert tokens == sorted(set(tokens))

    def test_they_do_not_run_ahead_of_the_clocks(self) -> None:
        """However slow answers are, tokens stay with the nodes' clocks: else a node that forgot
        could be given a lower one."""
        client = self.patient()
        self.cycle(client)
        for delay in (0.3, 0.0):
            for proxy in self.proxies:
                proxy.delay(delay)
            lease = self.take(client.lock("x"))
            assert abs(lease.token - self.now(0)) < SECOND
            assert lease.release() is True
        early, late = self.now(0), self.cycle(client)
        assert early - SECOND / 50 < late < self.now(0) + SECOND / 50


class TestRestarts(RedlockSuite):
    """Nodes that keep everything."""

    harness = RedlockHarness(persist=True)

    def test_one_after_the_other(self) -> None:
        """While all nodes are restarted in turn, a lease is held all the time under one token, and
        the tokens of others rise."""
        client, other = self.patient(ttl=4), self.patient(ttl=4)
        lease = self.take(client.lock("held"))
        tokens = [self.cycle(other)]
        for server in self.servers:
            server.restart(keep_data=True)
            tokens += [self.cycle(one) for one in (client, other)]
            assert other.lock("held").try_acquire() is None
        lease.extend()
        assert lease.held
        assert lease.release() is True
        second = self.take(other.lock("held"))
        assert second.token > lease.token
        assert second.release() is True
        assert tokens == sorted(set(tokens))

    def test_all_at_once(self) -> None:
        """After a power cut nothing is forgotten: who held still holds, and tokens go on."""
        client, other = self.patient(ttl=6), self.patient(ttl=6)
        lease = self.take(client.lock("held"))
        first = self.cycle(other)
        waiting = Spawned(self.take, other.lock("held"))
        self.harness.restart(keep_data=True)

        def works() -> bool:
            try:
                return self.cycle(client) > first
            except holdfast.EngineUnavailable:
                return False

        self.until(works)
        lease.extend()
        assert not waiting.done
        assert lease.release() is True
        assert (waiting.result()).release() is True


class TestClocks(ClockedRedlockSuite):
    """Nodes whose clocks can be set."""

    @pytest.mark.parametrize("step", [HOUR, -HOUR])
    def test_one_that_is_set(self, step: float) -> None:
        """A clock an hour ahead or behind moves no token, keeps no lock longer than its TTL, and is
        an event; the lease that was there is held by the others."""
        client, other = self.patient(ttl=2), self.patient(ttl=2)
        heard = self.listen(client)
        lease = self.take(client.lock("held"))
        tokens = [self.cycle(one) for one in (client, other)]
        self.servers[1].step_clock(step)
        tokens += [self.cycle(one) for one in (client, other) * 2]
        (seen,) = {event.node for event in heard.until(holdfast.events.ClockStep)}
        assert seen == client.engine.nodes[1].location  # type: ignore[attr-defined]
        assert abs(tokens[-1] - self.now(0)) < SECOND
        assert lease.held
        assert other.lock("held").try_acquire() is None
        self.grant(client, self.claim("dead", ttl=1))  # nobody renews it
        second = self.take(other.lock("dead"))
        assert second.release() is True
        self.servers[1].step_clock(0)
        tokens += [self.cycle(one) for one in (client, other)]
        assert tokens == sorted(set(tokens))
        assert lease.held
        assert lease.release() is True

    def test_one_that_is_set_and_kept_out(self) -> None:
        """With on_clock_step="block" a node whose clock was set is not counted on."""
        client = self.patient(on_clock_step="block", max_ttl=60)
        self.cycle(client)
        self.servers[4].step_clock(HOUR)
        self.cycle(client)
        self.settle(client)
        lease = self.take(client.lock("x"))
        self.settle(client)
        assert self.seats("x", lease.owner) == [0, 1, 2, 3]
        assert lease.release() is True
        self.settle(client)
        for number in (2, 3):
            self.servers[number].step_clock(-5)  # they would still grant
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        text = str(error)
        assert "3 of 5 nodes are kept out" in text or text.count("its clock was set") == 3
        self.until_free("x")
