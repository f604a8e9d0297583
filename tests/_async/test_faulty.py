"""A claim or a release whose request or answer is lost ends as if it had been told (S1, S6, S7)."""

from __future__ import annotations

import logging

import pytest

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
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
from holdfast.testing.running import AsyncSpawned
from tests._async.faulty_suite import GIVE_UP, PATIENCE, TTL, AsyncFaultySuite

LONG = 30.0  # a TTL that no test outlives: what is freed was freed by somebody


class TestClaim(AsyncFaultySuite):
    """Asking for a lock."""

    async def test_a_lost_answer_is_asked_for_again(self) -> None:
        """The retry has the same owner and gets the same token: one grant in all."""
        self.plan(("claim", 1, lose_reply()))
        lease = await self.take()
        first, second = self.faulty.answers("claim")
        assert isinstance(first, Grant)
        assert first.token == second.token == lease.token
        assert {call.about for call in self.faulty.calls} == {(lease.owner,)}
        assert self.holder() == (lease.owner, lease.token)
        assert await lease.release() is True

    async def test_a_refused_request_is_repeated(self) -> None:
        """An engine that is away for a moment costs a wait, not an error."""
        self.plan(("claim", range(1, 4), drop(0.0, refused=True)))
        lease = await self.take()
        assert self.faulty.count("claim") == 4
        assert len(self.faulty.answers("claim")) == 1
        assert await lease.release() is True

    async def test_two_copies_are_one_grant(self) -> None:
        """Executed twice, a claim changes neither owner nor token."""
        self.plan(("claim", 1, twice()))
        lease = await self.take()
        first, second = self.faulty.answers("claim")
        assert first.token == second.token == lease.token
        assert self.holder() == (lease.owner, lease.token)

    async def test_trying_once_does_not_guess(self) -> None:
        """try_acquire without an answer is EngineUnavailable, and what it got is given back."""
        self.plan(("claim", 1, lose_reply()))
        with pytest.raises(holdfast.EngineUnavailable, match="Nothing is held"):
            await self.client.lock("x", ttl=LONG).try_acquire()
        await self.until_free()
        assert self.faulty.answers("release") == [True]

    async def test_silence_until_the_timeout(self) -> None:
        """A claim that is never answered is EngineUnavailable, not None; nothing stays held."""
        self.plan(("claim", None, drop()))
        with pytest.raises(holdfast.EngineUnavailable):
            await self.client.lock("x", ttl=LONG).acquire(timeout=0.05)
        assert await self.faulty.reached("release", 1)
        assert self.record().kind is None

    async def test_silence_while_waiting_for_ever(self) -> None:
        """Without a timeout an engine that says nothing is given up after connect_timeout."""
        self.plan(("claim", None, lose_reply(GIVE_UP)))
        with pytest.raises(holdfast.EngineUnavailable):
            await self.client.lock("x", ttl=LONG).acquire(timeout=-1)
        await self.until_free()

    async def test_a_copy_that_lands_after_the_withdrawal(self) -> None:
        """A withdrawn claim leaves a tombstone: the request that comes later holds nothing."""
        self.plan(("claim", 1, late()))
        with pytest.raises(holdfast.EngineUnavailable):
            await self.client.lock("x", ttl=LONG).try_acquire()
        await self.until(lambda: self.faulty.answers("release") == [False])
        await self.faulty.land()
        assert len(self.faulty.answers("claim")) == 1
        assert self.record().kind is None

    async def test_a_copy_that_lands_before_the_withdrawal(self) -> None:
        """The other way round the withdrawal finds the claim holding, and ends it."""
        self.plan(("claim", 1, late()), ("release", 1, delay(0.1)))
        with pytest.raises(holdfast.EngineUnavailable):
            await self.client.lock("x", ttl=LONG).try_acquire()
        await self.faulty.land()
        assert self.record().kind is not None
        await self.until_free()

    async def test_a_copy_that_lands_while_the_lease_is_held(self) -> None:
        """The late copy of a claim that was repeated with success changes nothing."""
        self.plan(("claim", 1, late()))
        lease = await self.take()
        await self.faulty.land()
        assert self.holder() == (lease.owner, lease.token)
        assert await lease.release() is True
        assert self.record().kind is None

    async def test_a_copy_that_lands_after_the_release(self) -> None:
        """Where no deadline travels with a claim, such a copy holds for nobody, for one TTL."""
        self.plan(("claim", 1, late()))
        lease = await self.take()
        assert await lease.release() is True
        await self.faulty.land()
        assert not lease.held
        await self.until_free()
        assert (await self.block()).token > lease.token

    async def test_a_lost_answer_in_the_queue(self) -> None:
        """A waiter that asks again keeps its one place, and gets the lock when it is free."""
        blocker = await self.block()
        self.plan(("claim", 1, lose_reply()))
        waiter = AsyncSpawned(self.take)
        assert await self.faulty.reached("wait", 1)
        assert len(self.record().waiters) == 1
        assert await blocker.release() is True
        lease = await waiter.result()
        assert self.holder() == (lease.owner, lease.token)

    async def test_a_lost_push(self) -> None:
        """A waiter whose grant was pushed in vain gets the lock by its own timer."""
        blocker = await self.block(ttl=TTL)
        self.plan(("wait", None, lose_push()))
        waiter = AsyncSpawned(self.take, ttl=LONG)
        assert await self.faulty.reached("wait", 1)
        assert await blocker.release() is True
        owner, token = self.holder()  # its own already, but nobody told it
        lease = await waiter.result()
        assert (lease.owner, lease.token) == (owner, token)
        assert lease.held

    async def test_a_broken_wait(self) -> None:
        """When the link breaks while waiting, the waiter asks again and keeps its place."""
        blocker = await self.block()
        self.plan(("wait", range(1, 3), drop(0.0)))
        waiter = AsyncSpawned(self.take)
        assert await self.faulty.reached("wait", 3)
        assert len(self.record().waiters) == 1
        assert await blocker.release() is True
        assert (await waiter.result()).held

    async def test_leaving_the_queue_without_an_answer(self) -> None:
        """None would be a guess while our place may still be there: EngineUnavailable (S7)."""
        blocker = await self.block()
        self.plan(("release", 1, drop()))
        with pytest.raises(holdfast.EngineUnavailable):
            await self.client.lock("x").acquire(timeout=0.02)
        await self.until(lambda: not self.record().waiters)
        assert await blocker.release() is True

    async def test_an_answer_out_of_turn(self) -> None:
        """The answer to another request is noticed, and the right one is asked for again."""
        first = await self.take("first")
        self.plan(("claim", 2, out_of_turn()))
        second = await self.take("second")
        assert second.token > first.token
        assert self.holder("second") == (second.owner, second.token)

    async def test_what_a_believed_answer_does(self) -> None:
        """Control: a link that does not notice hands out the token of another lock."""
        first = await self.take("first")
        self.plan(("claim", 2, out_of_turn(believed=True)))
        second = await self.take("second")
        assert second.token == first.token

    async def test_a_foreign_error(self) -> None:
        """An exception nobody foresaw comes out as it is, and the claim is withdrawn."""
        self.plan(("claim", 1, fail(ZeroDivisionError("driver"))))
        with pytest.raises(ZeroDivisionError, match="driver"):
            await self.client.lock("x", ttl=LONG).acquire()
        assert await self.faulty.reached("release", 1)
        assert self.record().kind is None

    async def test_one_silent_part_of_a_group(self) -> None:
        """all_of holds all or nothing, also when one of them gets no answer."""
        self.plan(("claim", range(2, 100), lose_reply()))
        group = self.client.all_of(self.client.lock("x", ttl=LONG), self.client.lock("y", ttl=LONG))
        with pytest.raises(holdfast.EngineUnavailable):
            await group.acquire(timeout=0.05)
        await self.until_free("x")
        await self.until_free("y")

    async def test_a_job_without_an_answer_is_not_skipped(self) -> None:
        """singleton raises rather than say that another runs the job."""

        async def work() -> None:
            raise AssertionError("must not run")

        job = self.client.singleton("x", ttl=LONG)(work)
        self.plan(("claim", 1, lose_reply()))
        with pytest.raises(holdfast.EngineUnavailable):
            await job()
        await self.until_free()


class TestRelease(AsyncFaultySuite):
    """Giving a lock back."""

    async def test_a_lost_answer(self) -> None:
        """Returns None; the repeat in the background harms nobody who holds it by then."""
        lease = await self.take(ttl=LONG)
        heard = self.listen()
        self.plan(("release", 1, lose_reply()))
        assert await lease.release() is None
        successor = await self.block()
        await self.until(lambda: self.faulty.answers("release") == [True, False])
        assert self.holder() == (successor.owner, successor.token)
        assert [event.outcome for event in await heard.until(Released)] == [None]
        assert lease.lost_reason is None

    async def test_a_lost_request(self) -> None:
        """Returns None; the repeat in the background frees the lock long before its TTL."""
        lease = await self.take(ttl=LONG)
        self.plan(("release", range(1, 3), drop(0.0)))
        assert await lease.release() is None
        assert not lease.held
        await self.until_free()
        assert self.faulty.count("release") == 3

    async def test_an_answer_out_of_turn(self) -> None:
        """True or False of another release is not believed."""
        first, second = await self.take("first"), await self.take("second", ttl=LONG)
        assert await first.release() is True
        self.plan(("release", 2, out_of_turn()))
        assert await second.release() is None
        await self.until_free("second")

    async def test_a_late_copy(self) -> None:
        """A release that lands when the lock is another's leaves it alone."""
        lease = await self.take(ttl=LONG)
        self.plan(("release", 1, late()))
        assert await lease.release() is None
        await self.until_free()
        successor = await self.block()
        await self.faulty.land()
        assert self.faulty.answers("release") == [True, False]
        assert self.holder() == (successor.owner, successor.token)

    async def test_two_copies(self) -> None:
        """Executed twice, a release is one release."""
        lease = await self.take()
        self.plan(("release", 1, twice()))
        assert await lease.release() is True
        assert self.faulty.answers("release") == [True, False]
        assert lease.lost_reason is None

    async def test_no_answer_until_the_ttl_is_over(self, caplog: pytest.LogCaptureFixture) -> None:
        """Then the engine has dropped it by itself: one CRITICAL line, one event."""
        lease = await self.take()
        heard = self.listen()
        self.plan(("release", None, drop(0.0)))
        with caplog.at_level(logging.CRITICAL, "holdfast"):
            assert await lease.release() is None
            (event,) = await heard.until(ReleaseGaveUp)
            tries = self.faulty.count("release")
            await asleep(TTL)
        assert event.token == lease.token
        assert [record.levelname for record in caplog.records] == ["CRITICAL"]
        assert tries > 2
        assert self.faulty.count("release") == tries, "it is repeated although it was given up"
        assert self.record().kind is None

    async def test_a_marker_survives_the_repeat(self) -> None:
        """A job that counts as running for a while does so also when its release is repeated."""

        async def work() -> None:
            pass

        self.plan(("release", 1, lose_reply()))
        await self.client.singleton("x", at_least=LONG)(work)()
        await self.until(lambda: self.faulty.answers("release") == [True, False])
        assert self.record().kind is not None, "another could run the job already (S31)"

    async def test_a_foreign_error(self) -> None:
        """An exception nobody foresaw comes out, and the release happens all the same."""
        lease = await self.take(ttl=LONG)
        self.plan(("release", 1, fail(ZeroDivisionError("driver"))))
        with pytest.raises(ZeroDivisionError, match="driver"):
            await lease.release()
        await self.until_free()

    async def test_leaving_a_body_without_an_answer(self) -> None:
        """`with` does not raise because the release is still under way."""
        self.plan(("release", 1, lose_reply()))
        async with self.client.lock("x", ttl=LONG) as lease:
            pass
        assert lease.lost_reason is None
        await self.until_free()

    async def test_a_body_that_raised(self) -> None:
        """A release that fails never hides the body's error."""
        self.plan(("release", 1, fail(ZeroDivisionError("driver"))))
        with pytest.raises(KeyError, match="body"):
            async with self.client.lock("x", ttl=LONG):
                raise KeyError("body")
        await self.until_free()

    async def test_closing_without_an_answer(self) -> None:
        """close() tries to release until its own timeout and no longer."""
        await self.take("kept", ttl=LONG)
        lease = await self.take(ttl=LONG)
        self.plan(("release", None, drop(0.0)))
        await self.client.close(timeout=0.2)
        assert lease.lost_reason == "closed"
        assert self.faulty.count("release") >= 2
        with pytest.raises(holdfast.ClientClosed):
            await self.client.lock("x").try_acquire()


class TestLooking(AsyncFaultySuite):
    """The verbs that look, and the one that repairs."""

    async def test_a_lost_answer_to_a_question(self) -> None:
        """Looking without an answer is EngineUnavailable; asking again works."""
        for verb in ("inspect", "list", "ping"):
            self.faulty.follow([(verb, None, lose_reply())])
            with pytest.raises(holdfast.EngineUnavailable):
                await self.look(verb)
            self.faulty.follow(())
            await self.look(verb)

    async def look(self, verb: str) -> None:
        """Call what stands on that verb."""
        if verb == "inspect":
            assert (await self.client.inspect("x")).kind is None
            assert await self.client.lock("x").locked() is False
            assert await self.client.election("x").leader() is None
        elif verb == "list":
            assert await self.client.locks() == []
        else:
            await self.client.ping()

    async def test_a_lost_answer_to_force_release(self) -> None:
        """It may have happened: OutcomeUnknown, and here it has; its holder hears of it."""
        blocker = await self.block()
        self.plan(("force", 1, lose_reply()))
        with pytest.raises(holdfast.OutcomeUnknown):
            await self.client.force_release("x")
        assert await blocker.lost.wait(PATIENCE)
        assert blocker.lost_reason == "forced"
        assert await self.client.force_release("x") == 0
