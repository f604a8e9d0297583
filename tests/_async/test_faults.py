"""A faulty engine does to each call what the plan says, and nothing to the others."""

from __future__ import annotations

import time

import pytest

import holdfast.aio as holdfast
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
from holdfast.testing.running import AsyncSpawned
from tests._async.faulty_suite import PATIENCE, AsyncFaultySuite


def make_claim(owner: str = "me") -> Claim:
    return Claim(
        "holdfast/1/x", "x", Family.LOCK, Mode.EXCLUSIVE, (), 0, 30.0, "", "", owner, queue=True
    )


class TestFaults(AsyncFaultySuite):
    """Calls of the engine itself, without a client around it."""

    async def test_nothing_happens_without_a_fault(self) -> None:
        """Without a plan it is the inner engine, but never an instant one."""
        assert self.faulty.instant is False
        assert self.faulty.guarantees == self.client.guarantees
        answer = await self.faulty.claim(make_claim(), 1.0)
        assert isinstance(answer, Grant)
        assert await self.faulty.release(make_claim(), 1.0) is True
        assert [(call.verb, call.number) for call in self.faulty.calls] == [
            ("claim", 1),
            ("release", 1),
        ]

    async def test_the_plan_decides_by_verb_and_number(self) -> None:
        """Only the second claim is refused; a release between them does not count."""
        self.plan(("claim", 2, fail(KeyError("planned"))))
        await self.faulty.claim(make_claim(), 1.0)
        await self.faulty.release(make_claim(), 1.0)
        with pytest.raises(KeyError, match="planned"):
            await self.faulty.claim(make_claim(), 1.0)
        await self.faulty.claim(make_claim(), 1.0)
        assert [call.fault for call in self.faulty.calls] == ["", "", "fail", ""]

    async def test_a_dropped_request_takes_its_timeout(self) -> None:
        """The caller waits as long as it was ready to, and nothing is executed."""
        self.plan(("claim", None, drop()))
        started = time.monotonic()
        with pytest.raises(holdfast.OutcomeUnknown):
            await self.faulty.claim(make_claim(), 0.05)
        assert time.monotonic() - started >= 0.045
        assert self.faulty.executed == []

    async def test_a_refused_request_certainly_did_nothing(self) -> None:
        """EngineUnavailable and OutcomeUnknown are told apart, as the interface asks."""
        self.plan(("claim", 1, drop(0.0, refused=True)), ("claim", 2, drop(0.0)))
        with pytest.raises(holdfast.EngineUnavailable):
            await self.faulty.claim(make_claim(), 1.0)
        with pytest.raises(holdfast.OutcomeUnknown):
            await self.faulty.claim(make_claim(), 1.0)

    async def test_a_lost_answer_was_executed(self) -> None:
        """The record is there although the caller was told nothing."""
        self.plan(("claim", 1, lose_reply()))
        with pytest.raises(holdfast.OutcomeUnknown):
            await self.faulty.claim(make_claim(), 1.0)
        assert self.holder()[0] == "me"

    async def test_a_delay_within_the_timeout_is_an_answer(self) -> None:
        """There and back in time: the caller notices nothing."""
        self.plan(("claim", 1, delay(0.01, 0.01)))
        assert isinstance(await self.faulty.claim(make_claim(), PATIENCE), Grant)

    async def test_a_delay_beyond_the_timeout_still_arrives(self) -> None:
        """The caller gives up, the request does not."""
        self.plan(("claim", 1, delay(0.05)))
        with pytest.raises(holdfast.OutcomeUnknown):
            await self.faulty.claim(make_claim(), 0.01)
        assert self.record().kind is None
        await self.until(lambda: self.record().kind is not None)

    async def test_a_late_copy_waits_for_its_cue(self) -> None:
        """Without a time it lands when the test says so, and not before."""
        self.plan(("claim", 1, late()))
        with pytest.raises(holdfast.OutcomeUnknown):
            await self.faulty.claim(make_claim(), 1.0)
        assert self.record().kind is None
        await self.faulty.land()
        assert self.holder()[0] == "me"

    async def test_what_is_under_way_lands_before_the_link_closes(self) -> None:
        """A request that was sent stays sent."""
        self.plan(("claim", 1, late()))
        with pytest.raises(holdfast.OutcomeUnknown):
            await self.faulty.claim(make_claim(), 1.0)
        await self.faulty.close()
        assert self.holder()[0] == "me"

    async def test_two_copies_one_answer(self) -> None:
        """Both are executed; the first answer is heard."""
        self.plan(("release", 1, twice()))
        await self.faulty.claim(make_claim(), 1.0)
        assert await self.faulty.release(make_claim(), 1.0) is True
        assert self.faulty.answers("release") == [True, False]

    async def test_a_blocked_call_ignores_its_timeout(self) -> None:
        """It comes back when it is let go, and has been executed then."""
        await self.faulty.claim(make_claim(), 1.0)
        self.plan(("renew", 1, block(PATIENCE)))
        call = AsyncSpawned(self.faulty.renew, [make_claim()], 0.001)
        assert await self.faulty.reached("renew", 1)
        assert not call.done
        self.faulty.unblock()
        assert [renewal.outcome for renewal in await call.result()] == ["renewed"]

    async def test_a_plan_may_change(self) -> None:
        """Counting goes on over a change of plan."""
        self.plan(("ping", None, fail(KeyError())))
        with pytest.raises(KeyError):
            await self.faulty.ping(1.0)
        self.plan(("ping", 2, pause()))
        await self.faulty.ping(1.0)
        assert [call.fault for call in self.faulty.calls] == ["fail", "pause"]
        assert self.faulty.count("ping") == 2

    async def test_waiting_is_a_call_too(self) -> None:
        """A wait without a fault hears the push."""
        blocker = await self.block()
        queued = await self.faulty.claim(make_claim(), 1.0)
        assert isinstance(queued, Queued)
        waiter = AsyncSpawned(self.faulty.wait, make_claim(), queued, PATIENCE)
        assert await self.faulty.reached("wait", 1)
        assert await blocker.release() is True
        grant = await waiter.result()
        assert grant is not None
        assert self.holder() == ("me", grant.token)


class TestPlans(AsyncFaultySuite):
    """Plans as such."""

    async def test_the_first_rule_that_fits_decides(self) -> None:
        """A list is read from its top."""
        first, rest = drop(), late()
        plan = as_plan([("claim", range(2, 4), first), ("claim", None, rest)])
        assert [plan("claim", number) for number in range(1, 6)] == [rest, first, first, rest, rest]
        assert plan("renew", 2) is None

    async def test_the_same_seed_is_the_same_plan(self) -> None:
        """In whatever order it is asked; another seed is another plan."""
        faults = [drop(), late(), twice()]
        calls = [(verb, number) for verb in ("claim", "renew") for number in range(200)]
        one, same, other = (random_plan(seed, faults, rate=0.3) for seed in (7, 7, 8))
        told = {call: one(*call) for call in calls}
        assert {call: same(*call) for call in reversed(calls)} == told
        assert {call: other(*call) for call in calls} != told
        hit = sum(fault is not None for fault in told.values())
        assert 60 < hit < 180

    async def test_always_means_every_call(self) -> None:
        """Of the verbs that are named, or of all."""
        slow = always(pause())
        assert slow("claim", 1) == slow("ping", 99) == pause()
        assert always(pause(), ["renew"])("claim", 1) is None
