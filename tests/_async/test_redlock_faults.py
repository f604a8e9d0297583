"""Messages that are lost or late between a client and the nodes of a Redlock: nothing is stuck, and
nobody gets in beside a holder."""

from __future__ import annotations

import time
from typing import Any

import pytest

import holdfast.aio as holdfast
from holdfast._async.engines.redlock import FORCE, RENEW
from holdfast._async.engines.redlock_look import INSPECT
from holdfast._async.engines.redlock_voting import RELEASE, VOTE, Attempt
from holdfast._concurrency import asleep
from holdfast.clocks import boot_clock
from holdfast.model import Claim, Grant, Outcome, Queued, Reason, Renewal
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.running import elapsed
from tests._async.redlock_suite import ALL, LONG, PATIENT, AsyncRedlockSuite

QUICK = 9.0  # what is told, not timed, takes less
ONE, MOST = (3,), (0, 2, 4)

on_one_or_most = pytest.mark.parametrize("nodes", [ONE, MOST])


class TestLostReplies(AsyncRedlockSuite):
    """Nodes did what they were asked, and the client does not hear of it."""

    harness = RedlockHarness()

    def lose(self, nodes: tuple[int, ...], digest: bytes) -> list[Any]:
        """Lose the next reply to this script on each of these nodes."""
        return [self.proxies[number].drop_next_reply(digest) for number in nodes]

    async def until_told(self, client: holdfast.Client, name: str) -> None:
        """Return when all nodes are free: those that were silent are told when next used."""

        async def told() -> bool:
            await self.cycle(client, "other")
            return not self.seats(name)

        await self.until(told)

    @on_one_or_most
    async def test_vote(self, nodes: tuple[int, ...]) -> None:
        """The lock is had under one token, after another round if need be; then all is free."""
        client = self.patient()
        await self.warm_up(client)
        lost = self.lose(nodes, VOTE.digest)
        lease = await self.take(client.lock("x"))
        await self.until_so(lambda: all(one.is_set() for one in lost))
        held = [
            number for number in ALL if self.tokens_at(number, "x") == {lease.owner: lease.token}
        ]
        assert len(held) >= 3
        assert await self.direct().lock("x").try_acquire() is None
        started = time.monotonic()
        assert await lease.release() is True
        await self.until_told(client, "x")
        assert elapsed(started) < QUICK

    @on_one_or_most
    async def test_vote_of_one_that_does_not_wait(self, nodes: tuple[int, ...]) -> None:
        """Most answers lost is EngineUnavailable, and what was granted is given back soon."""
        client = self.patient()
        await self.warm_up(client)
        self.lose(nodes, VOTE.digest)
        started = time.monotonic()
        if nodes is MOST:
            await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        else:
            lease = await client.lock("x").try_acquire()
            assert lease is not None
            assert await lease.release() is True
        await self.until_told(client, "x")
        assert elapsed(started) < QUICK

    @on_one_or_most
    async def test_vote_of_a_waiter(self, nodes: tuple[int, ...]) -> None:
        """A waiter keeps its one place in each queue, and gets in when its turn comes."""
        client, other = self.patient(), self.direct()
        await self.warm_up(client)
        lease = await self.take(other.lock("x"))
        self.lose(nodes, VOTE.digest)
        waiter = self.beside(self.take, client.lock("x"))
        await self.until_so(lambda: all(self.waiting(number, "x") == 1 for number in ALL))
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True
        await self.until_told(client, "x")

    @on_one_or_most
    async def test_renewal(self, nodes: tuple[int, ...]) -> None:
        """One lost answer is nothing; of most, the lease is suspended, and resumed by the next."""
        client = self.patient(ttl=3, node_timeout=0.15)
        await self.warm_up(client)
        heard = self.listen(client)
        lease = await self.take(client.lock("x"))
        lost = self.lose(nodes, RENEW.digest)
        if nodes is MOST:
            await heard.until(holdfast.events.Suspended)
            assert lease.held
            await heard.until(holdfast.events.Resumed)
        else:
            await heard.until(holdfast.events.Renewed)
            assert not lease.suspended
        assert all(one.is_set() for one in lost)
        assert lease.held
        assert await lease.release() is True
        await self.until_told(client, "x")

    async def test_restoring(self) -> None:
        """Seating a lease again may go unanswered: it is there, or will be, and ends with it."""
        client = self.patient(ttl=3, node_timeout=0.15)
        await self.warm_up(client)
        lease = await self.take(client.lock("x"))
        await self.settle(client)
        self.unseat("x", ONE[0])
        lost = self.lose(ONE, self.roster_key.encode())  # no other script is told that key
        await self.until_so(lambda: self.seats("x", lease.owner) == [*ALL])
        await self.until_so(lost[0].is_set)
        assert await lease.release() is True
        await self.until_told(client, "x")

    @on_one_or_most
    async def test_release(self, nodes: tuple[int, ...]) -> None:
        """One lost answer is nothing; of most, None: but the lock is free, and stays so."""
        client = self.patient()
        await self.warm_up(client)
        lease = await self.take(client.lock("x"))
        lost = self.lose(nodes, RELEASE.digest)
        started = time.monotonic()
        assert await lease.release() is (None if nodes is MOST else True)
        await self.until_so(lambda: all(one.is_set() for one in lost))
        second = await self.take(self.direct().lock("x"))
        assert elapsed(started) < QUICK
        assert second.token > lease.token
        await client.close()  # the repeated release has come, and was nobody's
        await second.ensure_held(LONG / 2)
        assert await second.release() is True

    @on_one_or_most
    async def test_force(self, nodes: tuple[int, ...]) -> None:
        """Of most answers lost nobody knows whether the lock was broken; the holder was told."""
        client, other = self.patient(), self.patient()
        lease = await self.take(client.lock("x"))
        await self.warm_up(other)
        self.lose(nodes, FORCE.digest)
        if nodes is MOST:
            await self.raises(holdfast.OutcomeUnknown, other.force_release, "x")
        else:
            assert await other.force_release("x") == 1
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.FORCED
        assert await other.force_release("x") == 0

    @on_one_or_most
    async def test_looking(self, nodes: tuple[int, ...]) -> None:
        """Looking changes nothing: one lost answer is nothing, of most it is EngineUnavailable."""
        client = self.patient()
        await self.warm_up(client)
        lease = await self.take(client.lock("x"))
        for digest, call in (
            (INSPECT.digest, lambda: client.inspect("x")),
            (b"SCAN", client.locks),
            (b"PING", client.ping),
        ):
            self.lose(nodes, digest)
            if nodes is MOST:
                await self.raises(holdfast.EngineUnavailable, call)
            await call()
        assert lease.held
        assert await lease.release() is True


class TestLateCopies(AsyncRedlockSuite):
    """Requests that were held up, and come when nobody wants them any more (S6)."""

    harness = RedlockHarness()

    async def hold_up(self, client: holdfast.Client, claim: Claim, *numbers: int) -> Any:
        """Make a claim of which the copies to these nodes are held up; return what comes of it."""
        self.cut(*numbers)
        try:
            return await client.engine.claim(claim, 5.0)
        except holdfast.LockError as error:
            return error

    async def let_through(self, *numbers: int) -> None:
        """Let the copies through, and return when the nodes have seen them."""
        self.forget_calls(numbers)
        self.heal(*numbers)
        await self.until_so(lambda: all(self.calls(number) >= 1 for number in numbers))

    @pytest.mark.parametrize("queue", [True, False])
    @pytest.mark.parametrize("numbers", [(3, 4), (0, 1, 2)])
    async def test_vote_after_its_time(self, queue: bool, numbers: tuple[int, ...]) -> None:
        """A vote that arrives after its round takes no seat, and no place in the queue."""
        client = self.patient(node_timeout=0.1)
        await self.warm_up(client)
        claim = self.claim("x", ttl=LONG, queue=queue)
        answer = await self.hold_up(client, claim, *numbers)
        assert isinstance(answer, Grant) == (len(numbers) == 2)
        await asleep(0.25)
        await self.let_through(*numbers)
        for number in numbers:
            assert self.tokens_at(number, "x") == {}
            assert self.waiting(number, "x") == 0
        assert await client.engine.release(claim, 5.0) is isinstance(answer, Grant)

    async def test_vote_after_its_release(self) -> None:
        """A vote that was withdrawn before it arrived is refused, however early it comes."""
        client, direct = self.patient(), self.direct()
        await self.warm_up(client)
        await direct.ping()
        claim = self.claim("x", ttl=LONG)
        self.cut(*ALL)
        waiting = self.beside(client.engine.claim, claim, 5.0)
        await asleep(0.05)
        assert await direct.engine.release(claim, 5.0) is False
        self.heal()
        answer = await waiting.result()
        assert isinstance(answer, Queued)
        assert self.seats("x") == []

    async def test_yield_after_a_later_grant(self) -> None:
        """What was granted in vain is given back; a node that hears so late keeps what it granted
        since: else another could get in beside the holder."""
        direct, client = self.direct(), self.patient(node_timeout=0.2)
        await self.warm_up(client)
        blocker, claim = self.claim("x", ttl=LONG), self.claim("x", ttl=LONG)
        await self.grant(direct, blocker)
        await self.settle(direct)
        self.unseat("x", 0, 1, 2)
        self.proxies[2].drop_replies()  # of the vote, and of what takes it back
        assert isinstance(await client.engine.claim(claim, 5.0), Queued)
        assert self.seats("x", claim.owner) == [2]
        self.heal()
        node = client.engine.nodes[2]  # type: ignore[attr-defined]
        await self.until_so(lambda: not node.away(boot_clock()))
        assert isinstance(await client.engine.claim(claim, 5.0), Grant)
        assert len(self.seats("x", claim.owner)) >= 3
        await direct.engine.release(blocker, 5.0)
        assert isinstance(await direct.engine.claim(self.claim("x"), 5.0), Queued)
        assert await client.engine.release(claim, 5.0) is True

    async def test_vote_of_an_earlier_round(self) -> None:
        """A copy of an earlier vote, for another slot of a semaphore, moves its owner nowhere."""
        client = self.patient()
        claim = self.claim("x", "semaphore-2", ttl=LONG)
        grant = await self.grant(client, claim)
        await self.settle(client)
        voting: Any = client.engine._voting  # type: ignore[attr-defined]
        held = voting.attempts[claim.owner]
        stale = Attempt(held.ticket, 1 - held.slot)
        before = [
            self.servers[number].command("HGET", self.key("x"), claim.owner) for number in ALL
        ]
        await voting._vote(claim, stale, grant.token - 5, boot_clock(), 5.0)
        await self.settle(client)
        after = [self.servers[number].command("HGET", self.key("x"), claim.owner) for number in ALL]
        assert before == after
        assert await client.engine.release(claim, 5.0) is True

    async def test_restoring_after_the_release(self) -> None:
        """A lease that was given back is not seated again by what was still on its way."""
        client = self.patient()
        claim = self.claim("x", ttl=LONG)
        await self.grant(client, claim)
        await self.settle(client)
        engine: Any = client.engine
        attempt = engine._voting.attempts[claim.owner]
        answers = [[0, 0]] * 5
        renewed = (await engine.renew([claim], 5.0))[0]
        assert renewed.outcome is Outcome.RENEWED
        self.unseat("x", *ALL)
        assert await engine.release(claim, 5.0) is False
        engine._voting.attempts[claim.owner] = attempt  # as if it had been looked up before
        await engine._restore([claim], [renewed], answers, PATIENT)
        assert self.seats("x") == []

    async def test_restoring_after_its_time(self) -> None:
        """A client that stood still between a renewal and what follows from it seats nobody."""
        client = self.patient()
        claim = self.claim("x", ttl=LONG)
        await self.grant(client, claim)
        await self.settle(client)
        engine: Any = client.engine
        self.unseat("x", 4)
        for not_after, seats in ((boot_clock() - 1, [0, 1, 2, 3]), (boot_clock() + LONG, [*ALL])):
            renewed = Renewal(Outcome.RENEWED, not_after)
            await engine._restore([claim], [renewed], [[0, 1]] * 4 + [[0, 0]], PATIENT)
            assert self.seats("x") == seats
        assert await engine.release(claim, 5.0) is True

    async def test_release_is_told_to_nodes_that_return(self) -> None:
        """A node that was away when the lock was given back hears of it when it is next used, long
        before the TTL is over; one that was never asked for it is not bothered."""
        client = self.patient(node_timeout=0.2)
        await self.warm_up(client)
        lease = await self.take(client.lock("x", ttl=LONG))
        await self.settle(client)
        self.cut(1, 2)
        assert await lease.release() is True
        await self.settle(client)
        for number in range(30):
            await self.cycle(client, f"y{number}")
        assert self.seats("x", lease.owner) == [1, 2]
        nodes: Any = client.engine.nodes  # type: ignore[attr-defined]
        assert max(len(node._owed) for node in nodes) <= 4
        self.heal()

        async def told() -> bool:
            await self.cycle(client, "other")
            return not self.seats("x") and not any(node._owed for node in nodes)

        started = time.monotonic()
        await self.until(told)
        assert elapsed(started) < QUICK

    async def test_renewal_counts_only_the_slot_that_is_held(self) -> None:
        """A seat in another slot, left behind where an answer was lost, does not keep a permit."""
        client = self.patient()
        claim = self.claim("x", "semaphore-2", ttl=LONG)
        await self.grant(client, claim)
        await self.settle(client)
        for number in (0, 1, 2):
            server, key = self.servers[number], self.key("x")
            words = server.command("HGET", key, claim.owner).split(" ")
            words[8] = str(1 - int(words[8]))
            server.command("HSET", key, claim.owner, " ".join(words))
        (renewal,) = await client.engine.renew([claim], 5.0)
        assert renewal.outcome is not Outcome.RENEWED
        await client.engine.release(claim, 5.0)

    async def test_tokens_far_ahead(self) -> None:
        """A node never accepts what is more than a minute ahead of its clock, not even from whom it
        has granted already; without a majority that is said, and is not taken for busy."""
        client = self.patient(node_timeout=0.2)
        await self.warm_up(client)
        far = self.now(0) + 3_600_000_000
        for number in (0, 1):
            self.servers[number].command("HSET", self.key("x"), "f", far)
        self.cut(2)
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "behind the last token" in str(error)
        assert max(self.floor(number, "x") for number in (3, 4)) < far
        await self.until_free("x", 0, 1, 3, 4)
