"""(Generated from _async/test_redis_requests.py by tools/unasync.py: do not edit.) What goes over the wire to Redis: as little as can be, never twice, never on a doubtful link."""

from __future__ import annotations

import time

import pytest

import holdfast
from holdfast._sync.engines.redis import CLAIM, RELEASE
from holdfast.model import Grant, Queued
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.running import Spawned, elapsed
from tests._sync.redis_suite import RedisSuite

PAIRS = 20
CROWD = 30
WAITERS = 200


class TestRequests(RedisSuite):
    """One server, and a proxy that counts."""

    harness = RedisHarness()

    def test_a_pair_is_two_requests(self) -> None:
        """After the first one, acquire and release are one request each, on one connection."""
        self.cycle(self.client)
        before, links = self.requests(), self.links()
        for _ in range(PAIRS):
            self.cycle(self.client)
        assert self.requests() - before == 2 * PAIRS
        assert self.links() == links
        assert len(links) == 1
        assert len(self.links("pubsub")) == 1

    def test_a_pair_is_five_calls_inside_scripts(self) -> None:
        """A lock that nobody else wants: the time, a look and a write to take it, and a look and a
        write to give it back, also after a renewal."""
        self.cycle(self.client)
        self.server.command("CONFIG", "RESETSTAT")
        for _ in range(PAIRS):
            self.cycle(self.client)
        found = {name: self.calls(name) for name in ("time", "hmget", "hset", "hdel")}
        assert found == {"time": PAIRS, "hmget": 2 * PAIRS, "hset": PAIRS, "hdel": PAIRS}
        lease = self.take(self.client.lock("x"))
        lease.extend()
        self.server.command("CONFIG", "RESETSTAT")
        assert lease.release() is True
        assert self.calls("time") == 0

    def test_a_hand_over_is_two_requests_each(self) -> None:
        """Whoever waits asks once and releases once: the grant comes by itself."""
        self.cycle(self.client)
        lease = self.take(self.client.lock("x"))
        before = self.requests()
        waiter = self.queue(self.client, self.client.lock("x"))
        assert lease.release() is True
        assert (waiter.result()).release() is True
        assert self.requests() - before <= 2 + 1 + 2  # a thread of its own connects and greets

    def test_one_request_renews_all(self) -> None:
        """Leases that are due together are renewed by one script."""
        leases = [self.take(self.client.lock(f"x{n}", ttl=2)) for n in range(50)]
        heard = self.listen(self.client)
        self.server.command("CONFIG", "RESETSTAT")
        heard.until(holdfast.events.Renewed, len(leases))
        assert self.calls() <= 10  # one for each step of the grid in which they were taken
        for lease in leases:
            assert lease.release() is True

    def test_what_timed_out_is_not_sent_again(self) -> None:
        """A request without an answer is sent once; its connection is never used again."""
        client = self.connect(connect_timeout=0.3)
        self.cycle(client)
        links = self.links()
        claim = self.claim("x")
        self.server.command("CONFIG", "RESETSTAT")
        self.proxy.drop_replies()
        started = time.monotonic()
        self.raises(holdfast.OutcomeUnknown, client.engine.claim, claim, 0.2)
        assert 0.19 < elapsed(started) < 2
        assert self.calls() == 1
        self.proxy.heal()
        answer = client.engine.claim(claim, 5.0)
        assert isinstance(answer, Grant)
        assert answer.token == self.floor("x"), "the owner that holds gets the same token"
        assert self.calls() == 2
        assert not links & self.links()
        assert client.engine.release(claim, 5.0) is True

    @pytest.mark.parametrize("script", [CLAIM, RELEASE])
    def test_what_was_cut_off_is_not_sent_again(self, script: object) -> None:
        """A connection that ends in the middle of a request is an unknown outcome, at once."""
        client = self.connect()
        self.cycle(client)
        claim = self.claim("x", ttl=20)
        if script is RELEASE:
            assert isinstance(client.engine.claim(claim, 5.0), Grant)
        self.server.command("CONFIG", "RESETSTAT")
        lost = self.proxy.drop_next_reply(CLAIM.digest if script is CLAIM else RELEASE.digest)
        verb = client.engine.claim if script is CLAIM else client.engine.release
        started = time.monotonic()
        self.raises(holdfast.OutcomeUnknown, verb, claim, 20.0)
        assert elapsed(started) < 5
        assert lost.is_set()
        assert self.calls() == 1
        client.engine.release(claim, 5.0)
        self.until_free("x")

    def test_200_waiters_in_order(self) -> None:
        """200 waiters get in as they came, and each hand-over is one script: not one more for the
        length of the queue, nor while they wait."""
        clients = [self.connect(ttl=30) for _ in range(4)]
        lease = self.take(self.client.lock("x", ttl=30))
        owners: list[str] = []
        for number in range(WAITERS):
            claim = self.claim("x", ttl=30)
            engine = clients[number % 4].engine
            assert isinstance(engine.claim(claim, 5.0), Queued)
            owners.append(claim.owner)
        shot = self.client.inspect("x")
        assert [entry.owner for entry in shot.waiters] == owners
        self.server.command("CONFIG", "RESETSTAT")
        token = lease.token
        assert lease.release() is True
        for number, owner in enumerate(owners):
            engine = clients[number % 4].engine
            claim = self.claim("x", ttl=30, owner=owner)
            grant = engine.wait(claim, Queued(0, 30.0), self.harness.patience)
            assert grant is not None, f"waiter {number} was not told"
            assert grant.token > token
            token = grant.token
            assert engine.release(claim, 5.0) is True
        assert self.calls() == 1 + WAITERS
        assert self.calls("zrange") <= 2 * (1 + WAITERS)
        self.until_free("x")

    def test_many_tasks_or_threads_of_one_client_in_order(self) -> None:
        """Those who come all at once, at the first use of a client, keep their places: each asks
        once, is told, and releases. Who is told before it has read its first answer asks again,
        because only that answer would anchor the grant in time (S10)."""
        self.cycle(self.client)
        client = self.connect(ttl=30)
        tokens: list[int] = []

        def once() -> None:
            lease = self.take(client.lock("x"))
            tokens.append(lease.token)
            assert lease.release() is True

        self.server.command("CONFIG", "RESETSTAT")
        for one in [Spawned(once) for _ in range(CROWD)]:
            one.result()
        assert tokens == sorted(set(tokens))
        assert len(tokens) == CROWD
        assert 2 * CROWD <= self.calls() <= 2 * CROWD + CROWD // 10
        self.until_free("x")
