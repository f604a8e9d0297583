"""(Generated from _async/conformance/verbs.py by tools/unasync.py: do not edit.) The engine's own verbs: each may be repeated, and none acts for an owner that has let go (S1)."""

from __future__ import annotations

import time

import holdfast

from ....clocks import boot_clock
from ....model import Claim, Grant, Outcome, Queued, Reason, Renewal
from ...running import Spawned
from .base import Base
from .kinds import every_kind


class VerbTests(Base):
    """claim, wait, renew, release, force and inspect, without a lease in between."""

    def renew(self, *claims: Claim) -> list[Renewal]:
        """Renew on the engine."""
        return self.client.engine.renew(claims, self.harness.patience)

    def release(self, claim: Claim) -> bool:
        """Release on the engine."""
        return self.client.engine.release(claim, self.harness.patience)

    def ask(self, claim: Claim) -> Grant | Queued:
        """Claim on the engine."""
        return self.client.engine.claim(claim, self.harness.patience)

    def refused(self, claim: Claim) -> Queued:
        """Make a claim that must not be granted."""
        answer = self.ask(claim)
        assert isinstance(answer, Queued), f"{claim.name!r} was granted"
        return answer

    def persist(self, claim: Claim) -> Grant:
        """Wait and ask again, as a client does, until the claim is granted."""
        end = time.monotonic() + self.harness.patience
        while isinstance(answer := self.ask(claim), Queued):
            assert time.monotonic() < end, f"{claim.name!r} was never granted"
            pause = min(answer.retry_in, 1.0)
            if (grant := self.client.engine.wait(claim, answer, pause)) is not None:
                return grant
        return answer

    @every_kind
    def test_claim_twice_is_one_hold(self, kind: str) -> None:
        """An owner that claims again has the same token and a fresh lease, and holds once."""
        claim = self.claim("x", kind)
        first = self.grant(self.client, claim)
        again = self.grant(self.client, claim)
        assert again.token == first.token
        assert again.not_after >= first.not_after
        assert len((self.client.inspect("x")).holders) == 1
        assert self.release(claim) is True
        assert (self.client.inspect("x")).kind is None

    def test_grant_is_valid_for_less_than_its_ttl(self) -> None:
        """`not_after` lies before the send time plus the TTL: the engine frees it later (S8)."""
        self.client.ping()
        before = boot_clock()
        grant = self.grant(self.client, self.claim("x", ttl=20))
        assert before < grant.not_after < before + 20

    @every_kind
    def test_queueing_twice_is_one_place(self, kind: str) -> None:
        """An owner that claims again while it waits keeps its one place in the queue."""
        self.mutex(kind, "x")
        holder, waiter = self.claim("x", kind), self.claim("x", kind)
        self.grant(self.client, holder)
        self.refused(waiter)
        self.refused(waiter)
        assert [one.owner for one in (self.client.inspect("x")).waiters] == [waiter.owner]
        self.release(holder)
        grant = self.persist(waiter)
        assert (self.grant(self.client, waiter)).token == grant.token
        assert self.release(waiter) is True

    def test_claim_without_queue_leaves_nothing(self) -> None:
        """A claim that does not want to wait is refused and forgotten."""
        holder = self.claim("x")
        self.grant(self.client, holder)
        self.refused(self.claim("x", queue=False))
        assert (self.client.inspect("x")).waiters == ()
        self.release(holder)
        assert (self.client.inspect("x")).kind is None

    def test_refusal_says_who_holds(self) -> None:
        """A busy answer names the holder's label and token, and when to ask again."""
        holder = self.claim("x", label="the one inside", ttl=20)
        grant = self.grant(self.client, holder)
        answer = self.refused(self.claim("x", queue=False))
        assert answer.retry_in > 0
        if answer.holder is not None:
            assert answer.holder.label == "the one inside"
            assert answer.holder.token == grant.token
            assert 0 < answer.holder.expires_in <= 20
        self.release(holder)

    @every_kind
    def test_release_twice_is_harmless(self, kind: str) -> None:
        """The first release says it held, the second that it did not; others keep their hold."""
        one, two = self.claim("x", kind), self.claim("x", kind)
        self.mutex(kind, "x")
        self.grant(self.client, one)
        assert self.release(one) is True
        assert self.release(one) is False
        grant = self.grant(self.client, two)
        assert self.release(one) is False
        assert (self.grant(self.client, two)).token == grant.token
        assert self.release(two) is True

    def test_release_of_a_waiter_leaves_the_queue(self) -> None:
        """Releasing a queued claim ends its wait: whoever is behind it moves up."""
        holder, first, second = self.claim("x"), self.claim("x"), self.claim("x")
        self.grant(self.client, holder)
        self.refused(first)
        self.refused(second)
        assert self.release(first) is False
        assert [one.owner for one in (self.client.inspect("x")).waiters] == [second.owner]
        assert self.release(holder) is True
        self.persist(second)
        assert self.release(second) is True

    def test_release_of_the_unknown_bars_its_claim(self) -> None:
        """A claim that arrives after its own withdrawal does not enter, now or later (S6)."""
        late = self.claim("x")
        self.client.ping()
        assert self.release(late) is False
        answer = self.ask(late)
        assert isinstance(answer, Queued), "a withdrawn claim was granted"
        assert (self.client.inspect("x")).holders == ()
        lease = self.take(self.client.lock("x"))
        lease.release()

    def test_renew_answers_in_order(self) -> None:
        """Renewed, released, never known and expired claims are told apart, each in its place."""
        held, gone, strange = self.claim("a"), self.claim("b"), self.claim("c")
        other = self.claim("d", ttl=20)
        for claim in (held, gone, other):
            self.grant(self.client, claim)
        self.release(gone)
        before = boot_clock()
        answers = self.renew(held, gone, strange, other)
        assert [answer.outcome for answer in answers] == [
            Outcome.RENEWED,
            Outcome.LOST,
            Outcome.LOST,
            Outcome.RENEWED,
        ]
        assert before < answers[0].not_after < before + held.ttl + self.harness.patience
        assert answers[3].not_after > before + 10
        assert (self.client.inspect("c")).kind is None, "renewing never creates"
        self.release(held)
        self.release(other)

    def test_renew_never_revives(self) -> None:
        """After its release, or once its TTL is over, a claim is lost, and stays so."""
        claim = self.claim("x")
        self.die_holding(claim)
        self.until_idle("x")
        answers = self.renew(claim)
        assert answers[0].outcome is Outcome.LOST
        assert answers[0].reason is Reason.EXPIRED
        assert (self.client.inspect("x")).kind is None

    def test_renew_says_stolen_when_another_holds(self) -> None:
        """A claim that was replaced is told so, and its waiter's place is no hold either."""
        old, new = self.claim("x"), self.claim("x")
        self.grant(self.client, old)
        self.release(old)
        self.grant(self.client, new)
        answers = self.renew(old)
        assert answers[0].outcome is Outcome.LOST
        assert answers[0].reason is Reason.STOLEN
        waiting = self.claim("x")
        self.refused(waiting)
        assert (self.renew(waiting))[0].outcome is Outcome.LOST
        self.release(waiting)
        self.release(new)

    def test_late_renewal_does_not_undo_a_newer_one(self) -> None:
        """A renewal of an older revision that comes after a newer one takes no time away (S14)."""
        if self.client.guarantees.expiry == "session":
            return
        old = self.claim("x")
        new = old._replace(ttl=20, revision=old.revision + 1)
        self.grant(self.client, old)
        for claim in (new, old):
            assert (self.renew(claim))[0].outcome is Outcome.RENEWED
        (entry,) = (self.client.inspect("x")).holders
        assert entry.expires_in > 10
        assert self.release(old) is True

    def test_force_takes_only_what_it_names(self) -> None:
        """A token that nobody has breaks nothing; the right one does, once."""
        claim = self.claim("x")
        grant = self.grant(self.client, claim)
        engine, key, patience = self.client.engine, claim.key, self.harness.patience
        assert engine.force(key, grant.token + 1, patience) == 0
        assert engine.force(key, grant.token - 1, patience) == 0
        assert engine.force(key, grant.token, patience) == 1
        assert engine.force(key, grant.token, patience) == 0
        assert engine.force(key, None, patience) == 0
        assert (self.renew(claim))[0].outcome is Outcome.LOST

    def test_unknown_record_is_empty(self) -> None:
        """Looking at a name that nobody uses is no error, and creates nothing."""
        snapshot = self.client.inspect("never used")
        assert snapshot.name == "never used"
        assert snapshot.kind is None
        assert snapshot.holders == snapshot.waiters == ()
        assert list(self.client.locks()) == []

    def test_wait_ends_with_its_time(self) -> None:
        """A wait without a grant returns None, and the place in the queue stays."""
        holder, waiter = self.claim("x", ttl=20), self.claim("x", ttl=20)
        self.grant(self.client, holder)
        queued = self.refused(waiter)
        assert self.client.engine.wait(waiter, queued, 0.02) is None
        assert [one.owner for one in (self.client.inspect("x")).waiters] == [waiter.owner]
        self.release(waiter)
        self.release(holder)

    def test_stop_waiting_ends_every_wait(self) -> None:
        """stop_waiting makes waits in progress, and later ones, return None at once."""
        client = self.connect()
        holder, waiter = self.claim("x", ttl=20), self.claim("x", ttl=20)
        self.grant(self.client, holder)
        client.ping()
        queued = client.engine.claim(waiter, self.harness.patience)
        assert isinstance(queued, Queued)
        waiting = Spawned(client.engine.wait, waiter, queued, 60.0)
        client.engine.stop_waiting()
        assert waiting.result(self.harness.patience) is None
        assert client.engine.wait(waiter, queued, 60.0) is None
        client.engine.release(waiter, self.harness.patience)
        self.release(holder)

    def test_ping_answers(self) -> None:
        """An engine that is there says so."""
        self.client.ping()
        assert isinstance(self.client, holdfast.Client)
