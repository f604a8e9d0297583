"""(Generated from _async/test_faults.py by tools/unasync.py: do not edit.) A faulty engine does to each call what the plan says, and nothing to the others."""

from __future__ import annotations

import time

import pytest

import holdfast
from holdfast.model import Claim, Family, Grant, Mode, Queued
from holdfast.testing.faults import (
    always,
    as_plan,
    block,
    delay,
    drop,
    fail,
    late,
    lose_reply,
    pause,
    random_plan,
    twice,
)
from holdfast.testing.running import Spawned
from tests._sync.faulty_suite import PATIENCE, FaultySuite


def make_claim(owner: str = "me") -> Claim:
    return Claim(
        "holdfast/1/x", "x", Family.LOCK, Mode.EXCLUSIVE, (), 0, 30.0, "", "", owner, queue=True
    )


class TestFaults(FaultySuite):
    """Calls of the engine itself, without a client around it."""

    def test_nothing_happens_without_a_fault(self) -> None:
        """Without a plan it is the inner engine, but never an instant one."""
        assert self.faulty.instant is False
        assert self.faulty.guarantees == self.client.guarantees
        answer = self.faulty.claim(make_claim(), 1.0)
        assert isinstance(answer, Grant)
        assert self.faulty.release(make_claim(), 1.0) is True
        assert [(call.verb, call.number) for call in self.faulty.calls] == [
            ("claim", 1),
            ("release", 1),
        ]

    def test_the_plan_decides_by_verb_and_number(self) -> None:
        """Only the second claim is refused; a release between them does not count."""
        self.plan(("claim", 2, fail(KeyError("planned"))))
        self.faulty.claim(make_claim(), 1.0)
        self.faulty.release(make_claim(), 1.0)
        with pytest.raises(KeyError, match="planned"):
            self.faulty.claim(make_claim(), 1.0)
        self.faulty.claim(make_claim(), 1.0)
        assert [call.fault for call in self.faulty.calls] == ["", "", "fail", ""]

    def test_a_dropped_request_takes_its_timeout(self) -> None:
        """The caller waits as long as it was ready to, and nothing is executed."""
        self.plan(("claim", None, drop()))
        started = time.monotonic()
        with pytest.raises(holdfast.OutcomeUnknown):
            self.faulty.claim(make_claim(), 0.05)
        assert time.monotonic() - started >= 0.045
        assert self.faulty.executed == []

    def test_a_refused_request_certainly_did_nothing(self) -> None:
        """EngineUnavailable and OutcomeUnknown are told apart, as the interface asks."""
        self.plan(("claim", 1, drop(0.0, refused=True)), ("claim", 2, drop(0.0)))
        with pytest.raises(holdfast.EngineUnavailable):
            self.faulty.claim(make_claim(), 1.0)
        with pytest.raises(holdfast.OutcomeUnknown):
            self.faulty.claim(make_claim(), 1.0)

    def test_a_lost_answer_was_executed(self) -> None:
        """The record is there although the caller was told nothing."""
        self.plan(("claim", 1, lose_reply()))
        with pytest.raises(holdfast.OutcomeUnknown):
            self.faulty.claim(make_claim(), 1.0)
        assert self.holder()[0] == "me"

    def test_a_delay_within_the_timeout_is_an_answer(self) -> None:
        """There and back in time: the caller notices nothing."""
        self.plan(("claim", 1, delay(0.01, 0.01)))
        assert isinstance(self.faulty.claim(make_claim(), PATIENCE), Grant)

    def test_a_delay_beyond_the_timeout_still_arrives(self) -> None:
        """The caller gives up, the request does not."""
        self.plan(("claim", 1, delay(0.05)))
        with pytest.raises(holdfast.OutcomeUnknown):
            self.faulty.claim(make_claim(), 0.01)
        assert self.record().kind is None
        self.until(lambda: self.record().kind is not None)

    def test_a_late_copy_waits_for_its_cue(self) -> None:
        """Without a time it lands when the test says so, and not before."""
        self.plan(("claim", 1, late()))
        with pytest.raises(holdfast.OutcomeUnknown):
            self.faulty.claim(make_claim(), 1.0)
        assert self.record().kind is None
        self.faulty.land()
        assert self.holder()[0] == "me"

    def test_what_is_under_way_lands_before_the_link_closes(self) -> None:
        """A request that was sent stays sent."""
        self.plan(("claim", 1, late()))
        with pytest.raises(holdfast.OutcomeUnknown):
            self.faulty.claim(make_claim(), 1.0)
        self.faulty.close()
        assert self.holder()[0] == "me"

    def test_two_copies_one_answer(self) -> None:
        """Both are executed; the first answer is heard."""
        self.plan(("release", 1, twice()))
        self.faulty.claim(make_claim(), 1.0)
        assert self.faulty.release(make_claim(), 1.0) is True
        assert self.faulty.answers("release") == [True, False]

    def test_a_blocked_call_ignores_its_timeout(self) -> None:
        """It comes back when it is let go, and has been executed then."""
        self.faulty.claim(make_claim(), 1.0)
        self.plan(("renew", 1, block(PATIENCE)))
        call = Spawned(self.faulty.renew, [make_claim()], 0.001)
        assert self.faulty.reached("renew", 1)
        assert not call.done
        self.faulty.unblock()
        assert [renewal.outcome for renewal in call.result()] == ["renewed"]

    def test_a_plan_may_change(self) -> None:
        """Counting goes on over a change of plan."""
        self.plan(("ping", None, fail(KeyError())))
        with pytest.raises(KeyError):
            self.faulty.ping(1.0)
        self.plan(("ping", 2, pause()))
        self.faulty.ping(1.0)
        assert [call.fault for call in self.faulty.calls] == ["fail", "pause"]
        assert self.faulty.count("ping") == 2

    def test_waiting_is_a_call_too(self) -> None:
        """A wait without a fault hears the push."""
        blocker = self.block()
        queued = self.faulty.claim(make_claim(), 1.0)
        assert isinstance(queued, Queued)
        waiter = Spawned(self.faulty.wait, make_claim(), queued, PATIENCE)
        assert self.faulty.reached("wait", 1)
        assert blocker.release() is True
        grant = waiter.result()
        assert grant is not None
        assert self.holder() == ("me", grant.token)


class TestPlans(FaultySuite):
    """Plans as such."""

    def test_the_first_rule_that_fits_decides(self) -> None:
        """A list is read from its top."""
        first, rest = drop(), late()
        plan = as_plan([("claim", range(2, 4), first), ("claim", None, rest)])
        assert [plan("claim", number) for number in range(1, 6)] == [rest, first, first, rest, rest]
        assert plan("renew", 2) is None

    def test_the_same_seed_is_the_same_plan(self) -> None:
        """In whatever order it is asked; another seed is another plan."""
        faults = [drop(), late(), twice()]
        calls = [(verb, number) for verb in ("claim", "renew") for number in range(200)]
        one, same, other = (random_plan(seed, faults, rate=0.3) for seed in (7, 7, 8))
        told = {call: one(*call) for call in calls}
        assert {call: same(*call) for call in reversed(calls)} == told
        assert {call: other(*call) for call in calls} != told
        hit = sum(fault is not None for fault in told.values())
        assert 60 < hit < 180

    def test_always_means_every_call(self) -> None:
        """Of the verbs that are named, or of all."""
        slow = always(pause())
        assert slow("claim", 1) == slow("ping", 99) == pause()
        assert always(pause(), ["renew"])("claim", 1) is None
