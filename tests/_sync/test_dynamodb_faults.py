"""(Generated from _async/test_dynamodb_faults.py by tools/unasync.py: do not edit.) Answers of DynamoDB that are lost, late or errors: no lock is stuck, nobody holds by mistake."""

from __future__ import annotations

import pytest

import holdfast
from holdfast._concurrency import sleep
from holdfast.model import Grant, Outcome, Queued
from holdfast.testing.dynamodb_harness import DynamoDBHarness
from holdfast.testing.running import Spawned
from tests._sync.dynamodb_suite import UPDATE, DynamoDBSuite

LONG = 30.0  # a TTL that nobody waits for
LIMIT = 10.0  # seconds for one answer
LATE = 0.3  # seconds that an answer takes on a slow way


class TestLostReplies(DynamoDBSuite):
    """The server does what it is asked, the connection breaks, and the client does not hear of it.

    The network does that here, by the proxy.
    """

    harness = DynamoDBHarness()

    def test_claim(self) -> None:
        """The claim is repeated by its owner and finds itself the holder: granted once."""
        self.cycle(self.client, "warm")
        lost = self.proxy.drop_next_reply(UPDATE)
        lease = self.take(self.client.lock("x"))
        assert lost.is_set()
        assert self.holders("x") == [lease.owner]
        assert int(self.item("x")["t"]["N"]) == lease.token
        assert lease.held
        assert lease.release() is True
        assert self.holders("x") == []

    def test_claim_that_does_not_wait(self) -> None:
        """No answer is EngineUnavailable, and what was granted is given back in the background."""
        self.cycle(self.client, "warm")
        lost = self.proxy.drop_next_reply(UPDATE)
        self.raises(holdfast.EngineUnavailable, self.client.lock("x").try_acquire)
        assert lost.is_set()
        self.until_free()
        self.cycle(self.client)

    def test_answer_that_comes_late(self) -> None:
        """Who hears at the last moment that a lock is taken is told so, and queued all the same."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        self.cycle(other, "warm")
        self.proxy.delay(LATE)
        claim = self.claim("x", ttl=LONG)
        assert isinstance(other.engine.claim(claim, 1.6 * LATE), Queued)
        self.proxy.heal()
        assert other.engine.release(claim, 5.0) is False
        assert lease.release() is True

    def test_release(self) -> None:
        """The repeated release finds nothing to do, and takes nothing from who came after."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(UPDATE)
        lease.release()
        assert lost.is_set()
        second = self.take(self.connect().lock("x", ttl=LONG))
        assert second.token > lease.token
        self.client.close()
        assert self.holders("x") == [second.owner]
        assert second.release() is True

    def test_renewal(self) -> None:
        """The lease is suspended, the next renewal resumes it; it is held all the time."""
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=6))
        lost = self.proxy.drop_next_reply(UPDATE)
        heard.until(holdfast.events.Suspended)
        assert lost.is_set()
        assert lease.held
        heard.until(holdfast.events.Resumed)
        assert lease.held
        assert lease.release() is True

    def test_extend(self) -> None:
        """Whether it was extended is unknown; extending again tells."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        lost = self.proxy.drop_next_reply(UPDATE)
        self.raises(holdfast.OutcomeUnknown, lease.extend)
        assert lost.is_set()
        lease.extend()
        assert lease.release() is True

    def test_force(self) -> None:
        """Whether it was broken is unknown; breaking it again breaks nothing more."""
        lease = self.take(self.connect().lock("x", ttl=LONG))
        self.client.ping()
        lost = self.proxy.drop_next_reply(UPDATE)
        self.raises(holdfast.OutcomeUnknown, self.client.force_release, "x", lease.token)
        assert lost.is_set()
        assert self.client.force_release("x", lease.token) == 0
        assert lease.release() is False

    def test_place_in_the_queue(self) -> None:
        """A waiter whose enqueueing had no answer has one place, and gets the lock in its turn."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        other.ping()
        wire = self.intrude(other)
        wire.let_pass("UpdateItem")  # the claim, which is refused
        wire.lose("UpdateItem")
        waiter = Spawned(self.take, other.lock("x", ttl=LONG))
        self.until_queued("x", 1)
        assert lease.release() is True
        second = waiter.result()
        assert second.token > lease.token
        assert self.waiters("x") == []
        assert second.release() is True

    def test_hand_over(self) -> None:
        """The release that lets a waiter in is repeated, and takes nothing away from it."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=LONG))
        self.intrude(self.client).lose("UpdateItem")
        lease.release()
        second = waiter.result()
        assert second.token > lease.token
        self.client.close()
        assert self.holders("x") == [second.owner]
        assert second.release() is True

    def test_confirmation(self) -> None:
        """A waiter that was let in, and whose first renewal had no answer, confirms it again."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=LONG))
        self.intrude(other).lose("UpdateItem")
        assert lease.release() is True
        second = waiter.result()
        assert self.holders("x") == [second.owner]
        second.ensure_held(LONG / 2)
        assert second.release() is True

    def until_queued(self, name: str, count: int) -> None:
        """Return when so many wait."""

        def queued() -> bool:
            return len(self.waiters(name)) == count

        self.until(queued)

    def test_place_that_could_not_be_given_back(self) -> None:
        """Who gave up while cut off is taken out of the queue once the server is heard again."""
        lease = self.take(self.connect().lock("x", ttl=LONG))
        other = self.connect(connect_timeout=0.5)
        waiter = self.queue(other, other.lock("x", ttl=self.ttl), timeout=1.0)
        self.proxy.cut()
        self.raises(holdfast.EngineUnavailable, waiter.result, LONG)
        assert len(self.waiters("x")) == 1
        sleep(1.5 * self.ttl)  # longer than a lease would be given back for
        self.proxy.heal()
        self.until_queued("x", 0)
        assert lease.release() is True
        assert self.holders("x") == []

    def test_place_is_given_back_along_with_the_next_claim(self) -> None:
        """Whatever that client next does with the lock takes it out."""
        lease = self.take(self.connect().lock("x", ttl=LONG))
        engine = self.client.engine
        ghost = self.claim("x", ttl=LONG)
        assert isinstance(engine.claim(ghost, 5.0), Queued)
        wire = self.intrude(self.client)
        wire.refuse("GetItem", "ThrottlingException")
        self.raises(holdfast.EngineUnavailable, engine.release, ghost, 5.0)
        waiter = self.queue(self.client, self.client.lock("x", ttl=LONG))
        assert ghost.owner not in self.waiters("x")
        assert lease.release() is True
        assert (waiter.result()).release() is True

    def test_debt_that_is_paid_by_who_waits(self) -> None:
        """A waiter whose write gives back what its client owes is let in by that same write."""
        engine = self.client.engine
        first, second = self.claim("x", ttl=LONG), self.claim("x", ttl=LONG)
        assert isinstance(engine.claim(first, LIMIT), Grant)
        queued = engine.claim(second, LIMIT)
        assert isinstance(queued, Queued)
        engine._owed[first.owner] = first  # type: ignore[attr-defined]
        grant = engine.wait(second, queued, LIMIT)
        assert isinstance(grant, Grant)
        assert self.holders("x") == [second.owner]
        assert engine.release(second, LIMIT) is True


class TestLateCopies(DynamoDBSuite):
    """A request arrives after its client has given it up (S6)."""

    harness = DynamoDBHarness()

    def test_claim_after_its_withdrawal(self) -> None:
        """A claim that was given up and withdrawn grants nothing when it arrives."""
        self.client.ping()
        wire = self.intrude(self.client)
        wire.keep("UpdateItem")
        claim = self.claim("x", ttl=LONG)
        self.raises(holdfast.OutcomeUnknown, self.client.engine.claim, claim, 5.0)
        assert self.client.engine.release(claim, 5.0) is False
        assert self.deliver(wire.kept[0]) == 400
        assert self.holders("x") == []
        self.cycle(self.connect())

    def test_claim_after_it_was_repeated_and_released(self) -> None:
        """Nor does the first copy of a claim whose second one was granted and given back."""
        self.client.ping()
        wire = self.intrude(self.client)
        wire.keep("UpdateItem")
        lease = self.take(self.client.lock("x", ttl=LONG))
        assert lease.release() is True
        assert list(self.item("x")["x"]["M"]) == [lease.owner]
        assert self.deliver(wire.kept[0]) == 400
        assert self.holders("x") == []
        self.cycle(self.connect())

    def test_place_after_its_withdrawal(self) -> None:
        """A waiter that gave up does not come back into the queue."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        other.ping()
        claim = self.claim("x", ttl=LONG)
        wire = self.intrude(other)
        wire.let_pass("UpdateItem")  # the claim, which is refused
        wire.keep("UpdateItem")
        self.raises(holdfast.OutcomeUnknown, other.engine.claim, claim, 5.0)
        other.engine.release(claim, 5.0)
        assert self.deliver(wire.kept[0]) == 400
        assert self.waiters("x") == []
        assert lease.release() is True
        assert self.holders("x") == []

    def test_renewal_after_release(self) -> None:
        """A renewal that comes after the release revives nothing."""
        claim = self.claim("x", ttl=LONG)
        self.grant(self.client, claim)
        wire = self.intrude(self.client)
        wire.keep("UpdateItem")
        self.raises(holdfast.OutcomeUnknown, self.client.engine.renew, [claim], 5.0)
        assert self.client.engine.release(claim, 5.0) is True
        assert self.deliver(wire.kept[0]) == 400
        assert self.holders("x") == []

    def test_release_after_the_next_claim(self) -> None:
        """A release that comes when another holds takes nothing from it."""
        claim, second = self.claim("x", ttl=LONG), self.claim("x", ttl=LONG)
        self.grant(self.client, claim)
        wire = self.intrude(self.client)
        wire.keep("UpdateItem")
        self.raises(holdfast.OutcomeUnknown, self.client.engine.release, claim, 5.0)
        assert self.client.engine.release(claim, 5.0) is True
        self.grant(self.client, second)
        assert self.deliver(wire.kept[0]) == 400
        assert self.holders("x") == [second.owner]
        assert self.client.engine.release(second, 5.0) is True

    def test_take_over_after_a_renewal(self) -> None:
        """Who takes a holder for dead is refused if that has renewed before the update came."""
        holder, waiter = self.claim("x"), self.claim("x")
        self.grant(self.client, holder)
        other = self.connect()
        other.ping()
        assert isinstance(other.engine.claim(waiter, 5.0), Queued)
        wire = self.intrude(other)
        wire.keep("UpdateItem")
        queued = Queued(0, 60.0)
        self.raises(holdfast.OutcomeUnknown, other.engine.wait, waiter, queued, 60.0)
        (renewal,) = self.client.engine.renew([holder], 5.0)
        assert renewal.outcome is Outcome.RENEWED
        assert self.deliver(wire.kept[0]) == 400
        assert self.holders("x") == [holder.owner]
        other.engine.release(waiter, 5.0)
        assert self.client.engine.release(holder, 5.0) is True


class TestErrors(DynamoDBSuite):
    """The server answers, with an error."""

    harness = DynamoDBHarness()

    @pytest.mark.parametrize(
        "code", ["ProvisionedThroughputExceededException", "ThrottlingException"]
    )
    def test_throttled_claim(self, code: str) -> None:
        """Who may wait tries again until it is served; who may not is told, and holds nothing."""
        self.client.ping()
        wire = self.intrude(self.client)
        wire.refuse("UpdateItem", code, times=3)
        lease = self.take(self.client.lock("x"))
        assert lease.release() is True
        wire.refuse("UpdateItem", code)
        error = self.raises(holdfast.EngineUnavailable, self.client.lock("y").try_acquire)
        assert "capacity" in str(error)
        assert self.holders("y") == []

    def test_failure_after_the_claim_was_done(self) -> None:
        """A server error says nothing: the repeated claim finds itself the holder."""
        self.client.ping()
        self.intrude(self.client).fail("UpdateItem")
        lease = self.take(self.client.lock("x"))
        assert self.holders("x") == [lease.owner]
        assert lease.release() is True

    @pytest.mark.parametrize(
        ("code", "status"), [("ThrottlingException", 400), ("InternalServerError", 500)]
    )
    def test_renewal_that_is_refused(self, code: str, status: int) -> None:
        """It changes nothing: the lease is suspended, and resumed by the next renewal."""
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=6))
        self.intrude(self.client).refuse("UpdateItem", code, status)
        heard.until(holdfast.events.Suspended)
        assert lease.held
        heard.until(holdfast.events.Resumed)
        assert lease.held
        assert lease.release() is True

    def test_release_that_is_throttled(self) -> None:
        """It is done again in the background."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        self.intrude(self.client).refuse("UpdateItem", "ThrottlingException", times=2)
        lease.release()
        self.until_free()

    def test_one_of_several_renewals_fails(self) -> None:
        """The others are renewed all the same."""
        claims = [self.claim(name, ttl=LONG) for name in "abc"]
        for claim in claims:
            self.grant(self.client, claim)
        self.intrude(self.client).refuse("UpdateItem", "InternalServerError", 500)
        renewals = self.client.engine.renew(claims, 5.0)
        outcomes = sorted(renewal.outcome for renewal in renewals)
        assert outcomes == [Outcome.RENEWED, Outcome.RENEWED, Outcome.UNKNOWN]
        for claim in claims:
            assert self.client.engine.release(claim, 5.0) is True

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            ("AccessDeniedException", "IAM policy"),
            ("ExpiredTokenException", "get new ones"),
            ("UnrecognizedClientException", "credentials"),
            ("TransactionConflictException", "try again"),
            ("SomethingNewException", "SomethingNewException"),
        ],
    )
    def test_every_refusal_says_what_to_do(self, code: str, words: str) -> None:
        """One sentence, with the remedy."""
        self.client.ping()
        self.intrude(self.client).refuse("GetItem", code)
        error = self.raises(holdfast.EngineUnavailable, self.client.inspect, "x")
        assert words in str(error)
        assert str(error).endswith(".")
