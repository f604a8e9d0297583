"""(Generated from _async/test_faulty.py by tools/unasync.py: do not edit.) A claim or a release whose request or answer is lost ends as if it had been told (S1, S6, S7)."""

from __future__ import annotations

import logging

import pytest

import holdfast
from holdfast._concurrency import sleep
from holdfast.events import Released, ReleaseGaveUp
from holdfast.model import Grant
from holdfast.testing.faults import (
    delay,
    drop,
    fail,
    late,
    lose_push,
    lose_reply,
    out_of_turn,
    twice,
)
from holdfast.testing.running import Spawned
from tests._sync.faulty_suite import GIVE_UP, PATIENCE, TTL, FaultySuite

LONG = 30.0  # a TTL that no test outlives: what is freed was freed by somebody


class TestClaim(FaultySuite):
    """Asking for a lock."""

    def test_a_lost_answer_is_asked_for_again(self) -> None:
        """The retry has the same owner and gets the same token: one grant in all."""
        self.plan(("claim", 1, lose_reply()))
        lease = self.take()
        first, second = self.faulty.answers("claim")
        assert isinstance(first, Grant)
        assert first.token == second.token == lease.token
        assert {call.about for call in self.faulty.calls} == {(lease.owner,)}
        assert self.holder() == (lease.owner, lease.token)
        assert lease.release() is True

    def test_a_refused_request_is_repeated(self) -> None:
        """An engine that is away for a moment costs a wait, not an error."""
        self.plan(("claim", range(1, 4), drop(0.0, refused=True)))
        lease = self.take()
        assert self.faulty.count("claim") == 4
        assert len(self.faulty.answers("claim")) == 1
        assert lease.release() is True

    def test_two_copies_are_one_grant(self) -> None:
        """Executed twice, a claim changes neither owner nor token."""
        self.plan(("claim", 1, twice()))
        lease = self.take()
        first, second = self.faulty.answers("claim")
        assert first.token == second.token == lease.token
        assert self.holder() == (lease.owner, lease.token)

    def test_trying_once_does_not_guess(self) -> None:
        """try_acquire without an answer is EngineUnavailable, and what it got is given back."""
        self.plan(("claim", 1, lose_reply()))
        with pytest.raises(holdfast.EngineUnavailable, match="Nothing is held"):
            self.client.lock("x", ttl=LONG).try_acquire()
        self.until_free()
        assert self.faulty.answers("release") == [True]

    def test_silence_until_the_timeout(self) -> None:
        """A claim that is never answered is EngineUnavailable, not None; nothing stays held."""
        self.plan(("claim", None, drop()))
        with pytest.raises(holdfast.EngineUnavailable):
            self.client.lock("x", ttl=LONG).acquire(timeout=0.05)
        assert self.faulty.reached("release", 1)
        assert self.record().kind is None

    def test_silence_while_waiting_for_ever(self) -> None:
        """Without a timeout an engine that says nothing is given up after connect_timeout."""
        self.plan(("claim", None, lose_reply(GIVE_UP)))
        with pytest.raises(holdfast.EngineUnavailable):
            self.client.lock("x", ttl=LONG).acquire(timeout=-1)
        self.until_free()

    def test_a_copy_that_lands_after_the_withdrawal(self) -> None:
        """A withdrawn claim leaves a tombstone: the request that comes later holds nothing."""
        self.plan(("claim", 1, late()))
        with pytest.raises(holdfast.EngineUnavailable):
            self.client.lock("x", ttl=LONG).try_acquire()
        self.until(lambda: self.faulty.answers("release") == [False])
        self.faulty.land()
        assert len(self.faulty.answers("claim")) == 1
        assert self.record().kind is None

    def test_a_copy_that_lands_before_the_withdrawal(self) -> None:
        """The other way round the withdrawal finds the claim holding, and ends it."""
        self.plan(("claim", 1, late()), ("release", 1, delay(0.1)))
        with pytest.raises(holdfast.EngineUnavailable):
            self.client.lock("x", ttl=LONG).try_acquire()
        self.faulty.land()
        assert self.record().kind is not None
        self.until_free()

    def test_a_copy_that_lands_while_the_lease_is_held(self) -> None:
        """The late copy of a claim that was repeated with success changes nothing."""
        self.plan(("claim", 1, late()))
        lease = self.take()
        self.faulty.land()
        assert self.holder() == (lease.owner, lease.token)
        assert lease.release() is True
        assert self.record().kind is None

    def test_a_copy_that_lands_after_the_release(self) -> None:
        """Where no deadline travels with a claim, such a copy holds for nobody, for one TTL."""
        self.plan(("claim", 1, late()))
        lease = self.take()
        assert lease.release() is True
        self.faulty.land()
        assert not lease.held
        self.until_free()
        assert (self.block()).token > lease.token

    def test_a_lost_answer_in_the_queue(self) -> None:
        """A waiter that asks again keeps its one place, and gets the lock when it is free."""
        blocker = self.block()
        self.plan(("claim", 1, lose_reply()))
        waiter = Spawned(self.take)
        assert self.faulty.reached("wait", 1)
        assert len(self.record().waiters) == 1
        assert blocker.release() is True
        lease = waiter.result()
        assert self.holder() == (lease.owner, lease.token)

    def test_a_lost_push(self) -> None:
        """A waiter whose grant was pushed in vain gets the lock by its own timer."""
        blocker = self.block(ttl=TTL)
        self.plan(("wait", None, lose_push()))
        waiter = Spawned(self.take, ttl=LONG)
        assert self.faulty.reached("wait", 1)
        assert blocker.release() is True
        owner, token = self.holder()  # its own already, but nobody told it
        lease = waiter.result()
        assert (lease.owner, lease.token) == (owner, token)
        assert lease.held

    def test_a_broken_wait(self) -> None:
        """When the link breaks while waiting, the waiter asks again and keeps its place."""
        blocker = self.block()
        self.plan(("wait", range(1, 3), drop(0.0)))
        waiter = Spawned(self.take)
        assert self.faulty.reached("wait", 3)
        assert len(self.record().waiters) == 1
        assert blocker.release() is True
        assert (waiter.result()).held

    def test_leaving_the_queue_without_an_answer(self) -> None:
        """None would be a guess while our place may still be there: EngineUnavailable (S7)."""
        blocker = self.block()
        self.plan(("release", 1, drop()))
        with pytest.raises(holdfast.EngineUnavailable):
            self.client.lock("x").acquire(timeout=0.02)
        self.until(lambda: not self.record().waiters)
        assert blocker.release() is True

    def test_an_answer_out_of_turn(self) -> None:
        """The answer to another request is noticed, and the right one is asked for again."""
        first = self.take("first")
        self.plan(("claim", 2, out_of_turn()))
        second = self.take("second")
        assert second.token > first.token
        assert self.holder("second") == (second.owner, second.token)

    def test_what_a_believed_answer_does(self) -> None:
        """Control: a link that does not notice hands out the token of another lock."""
        first = self.take("first")
        self.plan(("claim", 2, out_of_turn(believed=True)))
        second = self.take("second")
        assert second.token == first.token

    def test_a_foreign_error(self) -> None:
        """An exception nobody foresaw comes out as it is, and the claim is withdrawn."""
        self.plan(("claim", 1, fail(ZeroDivisionError("driver"))))
        with pytest.raises(ZeroDivisionError, match="driver"):
            self.client.lock("x", ttl=LONG).acquire()
        assert self.faulty.reached("release", 1)
        assert self.record().kind is None

    def test_one_silent_part_of_a_group(self) -> None:
        """all_of holds all or nothing, also when one of them gets no answer."""
        self.plan(("claim", range(2, 100), lose_reply()))
        group = self.client.all_of(self.client.lock("x", ttl=LONG), self.client.lock("y", ttl=LONG))
        with pytest.raises(holdfast.EngineUnavailable):
            group.acquire(timeout=0.05)
        self.until_free("x")
        self.until_free("y")

    def test_a_job_without_an_answer_is_not_skipped(self) -> None:
        """singleton raises rather than say that another runs the job."""

        def work() -> None:
            raise AssertionError("must not run")

        job = self.client.singleton("x", ttl=LONG)(work)
        self.plan(("claim", 1, lose_reply()))
        with pytest.raises(holdfast.EngineUnavailable):
            job()
        self.until_free()


class TestRelease(FaultySuite):
    """Giving a lock back."""

    def test_a_lost_answer(self) -> None:
        """Returns None; the repeat in the background harms nobody who holds it by then."""
        lease = self.take(ttl=LONG)
        heard = self.listen()
        self.plan(("release", 1, lose_reply()))
        assert lease.release() is None
        successor = self.block()
        self.until(lambda: self.faulty.answers("release") == [True, False])
        assert self.holder() == (successor.owner, successor.token)
        assert [event.outcome for event in heard.until(Released)] == [None]
        assert lease.lost_reason is None

    def test_a_lost_request(self) -> None:
        """Returns None; the repeat in the background frees the lock long before its TTL."""
        lease = self.take(ttl=LONG)
        self.plan(("release", range(1, 3), drop(0.0)))
        assert lease.release() is None
        assert not lease.held
        self.until_free()
        assert self.faulty.count("release") == 3

    def test_an_answer_out_of_turn(self) -> None:
        """True or False of another release is not believed."""
        first, second = self.take("first"), self.take("second", ttl=LONG)
        assert first.release() is True
        self.plan(("release", 2, out_of_turn()))
        assert second.release() is None
        self.until_free("second")

    def test_a_late_copy(self) -> None:
        """A release that lands when the lock is another's leaves it alone."""
        lease = self.take(ttl=LONG)
        self.plan(("release", 1, late()))
        assert lease.release() is None
        self.until_free()
        successor = self.block()
        self.faulty.land()
        assert self.faulty.answers("release") == [True, False]
        assert self.holder() == (successor.owner, successor.token)

    def test_two_copies(self) -> None:
        """Executed twice, a release is one release."""
        lease = self.take()
        self.plan(("release", 1, twice()))
        assert lease.release() is True
        assert self.faulty.answers("release") == [True, False]
        assert lease.lost_reason is None

    def test_no_answer_until_the_ttl_is_over(self, caplog: pytest.LogCaptureFixture) -> None:
        """Then the engine has dropped it by itself: one CRITICAL line, one event."""
        lease = self.take()
        heard = self.listen()
        self.plan(("release", None, drop(0.0)))
        with caplog.at_level(logging.CRITICAL, "holdfast"):
            assert lease.release() is None
            (event,) = heard.until(ReleaseGaveUp)
            tries = self.faulty.count("release")
            sleep(TTL)
        assert event.token == lease.token
        assert [record.levelname for record in caplog.records] == ["CRITICAL"]
        assert tries > 2
        assert self.faulty.count("release") == tries, "it is repeated although it was given up"
        assert self.record().kind is None

    def test_a_marker_survives_the_repeat(self) -> None:
        """A job that counts as running for a while does so also when its release is repeated."""

        def work() -> None:
            pass

        self.plan(("release", 1, lose_reply()))
        self.client.singleton("x", at_least=LONG)(work)()
        self.until(lambda: self.faulty.answers("release") == [True, False])
        assert self.record().kind is not None, "another could run the job already (S31)"

    def test_a_foreign_error(self) -> None:
        """An exception nobody foresaw comes out, and the release happens all the same."""
        lease = self.take(ttl=LONG)
        self.plan(("release", 1, fail(ZeroDivisionError("driver"))))
        with pytest.raises(ZeroDivisionError, match="driver"):
            lease.release()
        self.until_free()

    def test_leaving_a_body_without_an_answer(self) -> None:
        """`with` does not raise because the release is still under way."""
        self.plan(("release", 1, lose_reply()))
        with self.client.lock("x", ttl=LONG) as lease:
            pass
        assert lease.lost_reason is None
        self.until_free()

    def test_a_body_that_raised(self) -> None:
        """A release that fails never hides the body's error."""
        self.plan(("release", 1, fail(ZeroDivisionError("driver"))))
        with pytest.raises(KeyError, match="body"):
            with self.client.lock("x", ttl=LONG):
                raise KeyError("body")
        self.until_free()

    def test_closing_without_an_answer(self) -> None:
        """close() tries to release until its own timeout and no longer."""
        self.take("kept", ttl=LONG)
        lease = self.take(ttl=LONG)
        self.plan(("release", None, drop(0.0)))
        self.client.close(timeout=0.2)
        assert lease.lost_reason == "closed"
        assert self.faulty.count("release") >= 2
        with pytest.raises(holdfast.ClientClosed):
            self.client.lock("x").try_acquire()


class TestLooking(FaultySuite):
    """The verbs that look, and the one that repairs."""

    def test_a_lost_answer_to_a_question(self) -> None:
        """Looking without an answer is EngineUnavailable; asking again works."""
        for verb in ("inspect", "list", "ping"):
            self.faulty.follow([(verb, None, lose_reply())])
            with pytest.raises(holdfast.EngineUnavailable):
                self.look(verb)
            self.faulty.follow(())
            self.look(verb)

    def look(self, verb: str) -> None:
        """Call what stands on that verb."""
        if verb == "inspect":
            assert (self.client.inspect("x")).kind is None
            assert self.client.lock("x").locked() is False
            assert self.client.election("x").leader() is None
        elif verb == "list":
            assert self.client.locks() == []
        else:
            self.client.ping()

    def test_a_lost_answer_to_force_release(self) -> None:
        """It may have happened: OutcomeUnknown, and here it has; its holder hears of it."""
        blocker = self.block()
        self.plan(("force", 1, lose_reply()))
        with pytest.raises(holdfast.OutcomeUnknown):
            self.client.force_release("x")
        assert blocker.lost.wait(PATIENCE)
        assert blocker.lost_reason == "forced"
        assert self.client.force_release("x") == 0
