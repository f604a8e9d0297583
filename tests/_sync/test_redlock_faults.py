"""(Generated from _async/test_redlock_faults.py by tools/unasync.py: do not edit.) Messages that are lost or late between a client and the nodes of a Redlock: nothing is stuck, and
nobody gets in beside a holder."""

from __future__ import annotations

import time
from typing import Any

import pytest

import holdfast
from holdfast._sync.engines.redlock import FORCE, RENEW
from holdfast._sync.engines.redlock_look import INSPECT
from holdfast._sync.engines.redlock_voting import RELEASE, VOTE, Attempt
from holdfast._concurrency import sleep
from holdfast.clocks import boot_clock
from holdfast.model import Claim, Grant, Outcome, Queued, Reason, Renewal
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.running import elapsed
from tests._sync.redlock_suite import ALL, LONG, PATIENT, RedlockSuite

QUICK = 9.0  # what is told, not timed, takes less
ONE, MOST = (3,), (0, 2, 4)

on_one_or_most = pytest.mark.parametrize("nodes", [ONE, MOST])


class TestLostReplies(RedlockSuite):
    """Nodes did what they were asked, and the client does not hear of it."""

    harness = RedlockHarness()

    def lose(self, nodes: tuple[int, ...], digest: bytes) -> list[Any]:
        """Lose the next reply to this script on each of these nodes."""
        return [self.proxies[number].drop_next_reply(digest) for number in nodes]

    def until_told(self, client: holdfast.Client, name: str) -> None:
        """Return when all nodes are free: those that were silent are told when next used."""

        def told() -> bool:
            self.cycle(client, "other")
            return not self.seats(name)

        self.until(told)

    @on_one_or_most
    def test_vote(self, nodes: tuple[int, ...]) -> None:
        """The lock is had under one token, after another round if need be; then all is free."""
        client = self.patient()
        self.warm_up(client)
        lost = self.lose(nodes, VOTE.digest)
        lease = self.take(client.lock("x"))
        self.until_so(lambda: all(one.is_set() for one in lost))
        held = [
            number for number in ALL if self.tokens_at(number, "x") == {lease.owner: lease.token}
        ]
        assert len(held) >= 3
        assert self.direct().lock("x").try_acquire() is None
        started = time.monotonic()
        assert lease.release() is True
        self.until_told(client, "x")
        assert elapsed(started) < QUICK

    @on_one_or_most
    def test_vote_of_one_that_does_not_wait(self, nodes: tuple[int, ...]) -> None:
        """Most answers lost is EngineUnavailable, and what was granted is given back soon."""
        client = self.patient()
        self.warm_up(client)
        self.lose(nodes, VOTE.digest)
        started = time.monotonic()
        if nodes is MOST:
            self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        else:
            lease = client.lock("x").try_acquire()
            assert lease is not None
            assert lease.release() is True
        self.until_told(client, "x")
        assert elapsed(started) < QUICK

    @on_one_or_most
    def test_vote_of_a_waiter(self, nodes: tuple[int, ...]) -> None:
        """A waiter keeps its one place in each queue, and gets in when its turn comes."""
        client, other = self.patient(), self.direct()
        self.warm_up(client)
        lease = self.take(other.lock("x"))
        self.lose(nodes, VOTE.digest)
        waiter = self.beside(self.take, client.lock("x"))
        self.until_so(lambda: all(self.waiting(number, "x") == 1 for number in ALL))
        assert lease.release() is True
        second = waiter.result()
        assert second.token > lease.token
        assert second.release() is True
        self.until_told(client, "x")

    @on_one_or_most
    def test_renewal(self, nodes: tuple[int, ...]) -> None:
        """One lost answer is nothing; of most, the lease is suspended, and resumed by the next."""
        client = self.patient(ttl=3, node_timeout=0.15)
        self.warm_up(client)
        heard = self.listen(client)
        lease = self.take(client.lock("x"))
        lost = self.lose(nodes, RENEW.digest)
        if nodes is MOST:
            heard.until(holdfast.events.Suspended)
            assert lease.held
            heard.until(holdfast.events.Resumed)
        else:
            heard.until(holdfast.events.Renewed)
            assert not lease.suspended
        assert all(one.is_set() for one in lost)
        assert lease.held
        assert lease.release() is True
        self.until_told(client, "x")

    def test_restoring(self) -> None:
        """Seating a lease again may go unanswered: it is there, or will be, and ends with it."""
        client = self.patient(ttl=3, node_timeout=0.15)
        self.warm_up(client)
        lease = self.take(client.lock("x"))
        self.settle(client)
        self.unseat("x", ONE[0])
        lost = self.lose(ONE, self.roster_key.encode())  # no other script is told that key
        self.until_so(lambda: self.seats("x", lease.owner) == [*ALL])
        self.until_so(lost[0].is_set)
        assert lease.release() is True
        self.until_told(client, "x")

    @on_one_or_most
    def test_release(self, nodes: tuple[int, ...]) -> None:
        """One lost answer is nothing; of most, None: but the lock is free, and stays so."""
        client = self.patient()
        self.warm_up(client)
        lease = self.take(client.lock("x"))
        lost = self.lose(nodes, RELEASE.digest)
        started = time.monotonic()
        assert lease.release() is (None if nodes is MOST else True)
        self.until_so(lambda: all(one.is_set() for one in lost))
        second = self.take(self.direct().lock("x"))
        assert elapsed(started) < QUICK
        assert second.token > lease.token
        client.close()  # the repeated release has come, and was nobody's
        second.ensure_held(LONG / 2)
        assert second.release() is True

    @on_one_or_most
    def test_force(self, nodes: tuple[int, ...]) -> None:
        """Of most answers lost nobody knows whether the lock was broken; the holder was told."""
        client, other = self.patient(), self.patient()
        lease = self.take(client.lock("x"))
        self.warm_up(other)
        self.lose(nodes, FORCE.digest)
        if nodes is MOST:
            self.raises(holdfast.OutcomeUnknown, other.force_release, "x")
        else:
            assert other.force_release("x") == 1
        self.until_lost(lease)
        assert lease.lost_reason is Reason.FORCED
        assert other.force_release("x") == 0

    @on_one_or_most
    def test_looking(self, nodes: tuple[int, ...]) -> None:
        """Looking changes nothing: one lost answer is nothing, of most it is EngineUnavailable."""
        client = self.patient()
        self.warm_up(client)
        lease = self.take(client.lock("x"))
        for digest, call in (
            (INSPECT.digest, lambda: client.inspect("x")),
            (b"SCAN", client.locks),
            (b"PING", client.ping),
        ):
            self.lose(nodes, digest)
            if nodes is MOST:
                self.raises(holdfast.EngineUnavailable, call)
            call()
        assert lease.held
        assert lease.release() is True


class TestLateCopies(RedlockSuite):
    """Requests that were held up, and come when nobody wants them any more (S6)."""

    harness = RedlockHarness()

    def hold_up(self, client: holdfast.Client, claim: Claim, *numbers: int) -> Any:
        """Make a claim of which the copies to these nodes are held up; return what comes of it."""
        self.cut(*numbers)
        try:
            return client.engine.claim(claim, 5.0)
        except holdfast.LockError as error:
            return error

    def let_through(self, *numbers: int) -> None:
        """Let the copies through, and return when the nodes have seen them."""
        self.forget_calls(numbers)
        self.heal(*numbers)
        self.until_so(lambda: all(self.calls(number) >= 1 for number in numbers))

    @pytest.mark.parametrize("queue", [True, False])
    @pytest.mark.parametrize("numbers", [(3, 4), (0, 1, 2)])
    def test_vote_after_its_time(self, queue: bool, numbers: tuple[int, ...]) -> None:
        """A vote that arrives after its round takes no seat, and no place in the queue."""
        client = self.patient(node_timeout=0.1)
        self.warm_up(client)
        claim = self.claim("x", ttl=LONG, queue=queue)
        answer = self.hold_up(client, claim, *numbers)
        assert isinstance(answer, Grant) == (len(numbers) == 2)
        sleep(0.25)
        self.let_through(*numbers)
        for number in numbers:
            assert self.tokens_at(number, "x") == {}
            assert self.waiting(number, "x") == 0
        assert client.engine.release(claim, 5.0) is isinstance(answer, Grant)

    def test_vote_after_its_release(self) -> None:
        """A vote that was withdrawn before it arrived is refused, however early it comes."""
        client, direct = self.patient(), self.direct()
        self.warm_up(client)
        direct.ping()
        claim = self.claim("x", ttl=LONG)
        self.cut(*ALL)
        waiting = self.beside(client.engine.claim, claim, 5.0)
        sleep(0.05)
        assert direct.engine.release(claim, 5.0) is False
        self.heal()
        answer = waiting.result()
        assert isinstance(answer, Queued)
        assert self.seats("x") == []

    def test_yield_after_a_later_grant(self) -> None:
        """What was granted in vain is given back; a node that hears so late keeps what it granted
        since: else another could get in beside the holder."""
        direct, client = self.direct(), self.patient(node_timeout=0.2)
        self.warm_up(client)
        blocker, claim = self.claim("x", ttl=LONG), self.claim("x", ttl=LONG)
        self.grant(direct, blocker)
        self.settle(direct)
        self.unseat("x", 0, 1, 2)
        self.proxies[2].drop_replies()  # of the vote, and of what takes it back
        assert isinstance(client.engine.claim(claim, 5.0), Queued)
        assert self.seats("x", claim.owner) == [2]
        self.heal()
        node = client.engine.nodes[2]  # type: ignore[attr-defined]
        self.until_so(lambda: not node.away(boot_clock()))
        assert isinstance(client.engine.claim(claim, 5.0), Grant)
        assert len(self.seats("x", claim.owner)) >= 3
        direct.engine.release(blocker, 5.0)
        assert isinstance(direct.engine.claim(self.claim("x"), 5.0), Queued)
        assert client.engine.release(claim, 5.0) is True

    def test_vote_of_an_earlier_round(self) -> None:
        """A copy of an earlier vote, for another slot of a semaphore, moves its owner nowhere."""
        client = self.patient()
        claim = self.claim("x", "semaphore-2", ttl=LONG)
        grant = self.grant(client, claim)
        self.settle(client)
        voting: Any = client.engine._voting  # type: ignore[attr-defined]
        held = voting.attempts[claim.owner]
        stale = Attempt(held.ticket, 1 - held.slot)
        before = [
            self.servers[number].command("HGET", self.key("x"), claim.owner) for number in ALL
        ]
        voting._vote(claim, stale, grant.token - 5, boot_clock(), 5.0)
        self.settle(client)
        after = [self.servers[number].command("HGET", self.key("x"), claim.owner) for number in ALL]
        assert before == after
        assert client.engine.release(claim, 5.0) is True

    def test_restoring_after_the_release(self) -> None:
        """A lease that was given back is not seated again by what was still on its way."""
        client = self.patient()
        claim = self.claim("x", ttl=LONG)
        self.grant(client, claim)
        self.settle(client)
        engine: Any = client.engine
        attempt = engine._voting.attempts[claim.owner]
        answers = [[0, 0]] * 5
        renewed = (engine.renew([claim], 5.0))[0]
        assert renewed.outcome is Outcome.RENEWED
        self.unseat("x", *ALL)
        assert engine.release(claim, 5.0) is False
        engine._voting.attempts[claim.owner] = attempt  # as if it had been looked up before
        engine._restore([claim], [renewed], answers, PATIENT)
        assert self.seats("x") == []

    def test_restoring_after_its_time(self) -> None:
        """A client that stood still between a renewal and what follows from it seats nobody."""
        client = self.patient()
        claim = self.claim("x", ttl=LONG)
        self.grant(client, claim)
        self.settle(client)
        engine: Any = client.engine
        self.unseat("x", 4)
        for not_after, seats in ((boot_clock() - 1, [0, 1, 2, 3]), (boot_clock() + LONG, [*ALL])):
            renewed = Renewal(Outcome.RENEWED, not_after)
            engine._restore([claim], [renewed], [[0, 1]] * 4 + [[0, 0]], PATIENT)
            assert self.seats("x") == seats
        assert engine.release(claim, 5.0) is True

    def test_release_is_told_to_nodes_that_return(self) -> None:
        """A node that was away when the lock was given back hears of it when it is next used, long
        before the TTL is over; one that was never asked for it is not bothered."""
        client = self.patient(node_timeout=0.2)
        self.warm_up(client)
        lease = self.take(client.lock("x", ttl=LONG))
        self.settle(client)
        self.cut(1, 2)
        assert lease.release() is True
        self.settle(client)
        for number in range(30):
            self.cycle(client, f"y{number}")
        assert self.seats("x", lease.owner) == [1, 2]
        nodes: Any = client.engine.nodes  # type: ignore[attr-defined]
        assert max(len(node._owed) for node in nodes) <= 4
        self.heal()

        def told() -> bool:
            self.cycle(client, "other")
            return not self.seats("x") and not any(node._owed for node in nodes)

        started = time.monotonic()
        self.until(told)
        assert elapsed(started) < QUICK

    def test_renewal_counts_only_the_slot_that_is_held(self) -> None:
        """A seat in another slot, left behind where an answer was lost, does not keep a permit."""
        client = self.patient()
        claim = self.claim("x", "semaphore-2", ttl=LONG)
        self.grant(client, claim)
        self.settle(client)
        for number in (0, 1, 2):
            server, key = self.servers[number], self.key("x")
            words = server.command("HGET", key, claim.owner).split(" ")
            words[8] = str(1 - int(words[8]))
            server.command("HSET", key, claim.owner, " ".join(words))
        (renewal,) = client.engine.renew([claim], 5.0)
        assert renewal.outcome is not Outcome.RENEWED
        client.engine.release(claim, 5.0)

    def test_tokens_far_ahead(self) -> None:
        """A node never accepts what is more than a minute ahead of its clock, not even from whom it
        has granted already; without a majority that is said, and is not taken for busy."""
        client = self.patient(node_timeout=0.2)
        self.warm_up(client)
        far = self.now(0) + 3_600_000_000
        for number in (0, 1):
            self.servers[number].command("HSET", self.key("x"), "f", far)
        self.cut(2)
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "behind the last token" in str(error)
        assert max(self.floor(number, "x") for number in (3, 4)) < far
        self.until_free("x", 0, 1, 3, 4)
