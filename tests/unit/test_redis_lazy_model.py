"""The model test, where nobody looks before the next verb: each must settle what is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from holdfast._sync.engines.redis import RedisEngine
from holdfast.model import Claim
from holdfast.testing.adapters import EngineAdapter
from holdfast.testing.model import KINDS, NUMBERS, STEPS, TTLS, Machine, _key
from holdfast.testing.servers import RedisServer, need, redis_program
from holdfast.testing.servers.programs import faketime_library

VERBS = st.sampled_from(("again", "again", "claim", "renew", "release", "force"))


class LazyMachine(Machine):
    """A schedule in which time passes unseen."""

    @precondition(lambda self: self._known)
    @rule(units=STEPS, verb=VERBS, number=NUMBERS, ttl=TTLS)
    def advance_unseen(self, units: int, verb: str, number: int, ttl: float) -> None:
        """Time passes, and this verb is the first to find out."""
        before = [one for name in KINDS for one in self._reference.record(_key(name)).holders]
        self._adapter.advance(units * self._adapter.unit)
        self._reference.now += units * self._adapter.unit
        # Who waits does not renew or release before it hears of its grant: only who still holds.
        living = [one.claim.owner for one in before if one.until > self._reference.now]
        if verb == "claim":
            self._ask(self._make(number, 1, ttl, queue=True))
        elif verb == "again":
            copies = self._in_record()
            if copies:
                self._ask(copies[number % len(copies)])
        elif verb == "force":
            expected = self._reference.force(_key(self._focus), None)
            assert self._adapter.force(_key(self._focus), None) == expected
        elif living:
            owner = living[number % len(living)]
            claim = next(one for one in self._known if one.owner == owner)
            (self._renew if verb == "renew" else self._release)(claim)


class QuickAdapter(EngineAdapter):
    """Time must not pass while it waits for a push: one that was sent is there at once."""

    def pushed(self, claim: Claim) -> int | None:
        """See Adapter; whose own claim was granted by its reply hears of no push."""
        grant = self._engine.wait(claim, self._queued[claim.owner], 0.05)
        return self.claim(claim) if grant is None else grant.token


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Give a server whose clock can be set."""
    need(faketime_library)
    with RedisServer(need(redis_program), fake_clock=True) as server:
        yield server


def test_the_scripts(server: RedisServer) -> None:
    """Every verb of the scripts first lets go whose time is over, as the reference does."""
    passed = 0.0

    def advance(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        server.step_clock(passed)

    def make() -> QuickAdapter:
        server.command("FLUSHALL")
        return QuickAdapter(RedisEngine(server.url, max_ttl=300.0), advance, unit=4.0)

    run_state_machine_as_test(
        cast(Any, lambda: LazyMachine(make())),
        settings=settings(
            max_examples=70,
            stateful_step_count=25,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
