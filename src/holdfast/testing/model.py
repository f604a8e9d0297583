"""The model test: a random schedule must look the same on an engine and on the reference.

For engine authors: `run_model(lambda: EngineAdapter(engine, time.sleep))`, where each call gives
an empty place. Checked after every step: who holds, who waits in which order, that tokens rise and
stay, that repeating changes nothing, that another kind under a name is refused.

Needs hypothesis, which `pip install "holdfast[testing]"` brings.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, cast

from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ..errors import LockMismatch
from ..model import Claim, Family, Mode
from .adapters import Adapter
from .reference import Reference

Kind = tuple[Family, Mode, tuple[str, ...], int]

PATHS = ((), ("a",), ("b",), ("a", "b"), ("a", "b", "c"), ("ab",))
LOCKS: list[Kind] = [(Family.LOCK, mode, (), 0) for mode in Mode]
TREES: list[Kind] = [(Family.TREE, mode, path, 0) for mode in Mode for path in PATHS]
SEMAPHORES: list[Kind] = [(Family.SEMAPHORE, Mode.SHARED, (), limit) for limit in (1, 2, 3)]
KINDS = {  # by name, so that most claims meet others of their kind
    "lock": LOCKS,
    "tree": TREES,
    "permits": [*SEMAPHORES[1:2] * 9, *SEMAPHORES],
    "mixed": [*LOCKS, *TREES[:3], *SEMAPHORES],
}
CLAIMS = st.sampled_from([(name, kind) for name, kinds in KINDS.items() for kind in kinds])

# In units. Time passes in whole ones, so that nothing is ever a close call.
TTLS = st.sampled_from((1.5, 3.5, 6.5))
LINGERS = st.sampled_from((0.0, 0.0, 0.0, 2.5))
STEPS = st.sampled_from((1, 2, 5))


def _key(name: str) -> str:
    return f"holdfast/1/{name}"


class Machine(RuleBasedStateMachine):
    """One schedule."""

    claims: Bundle[Claim] = Bundle("claims")

    def __init__(self, adapter: Adapter) -> None:
        super().__init__()
        self._adapter = adapter
        self._reference = Reference()
        self._numbers = count(1)
        self._waiting: dict[str, Claim] = {}  # by owner, as of the last look
        self._tokens: dict[str, int] = {}  # by owner
        self._highest = dict.fromkeys(KINDS, 0)

    def _make(self, what: tuple[str, Kind], ttl: float, queue: bool) -> Claim:
        name, (family, mode, path, limit) = what
        return Claim(
            key=_key(name),
            name=name,
            family=family,
            mode=mode,
            path=path,
            limit=limit,
            ttl=ttl * self._adapter.unit,
            label="model",
            value="",
            owner=f"{next(self._numbers):032x}",
            queue=queue,
        )

    def _ask(self, claim: Claim) -> None:
        try:
            expected = self._reference.claim(claim)
        except LockMismatch:
            try:
                token = self._adapter.claim(claim)
            except LockMismatch:
                return
            raise AssertionError(f"another kind was not refused but answered {token}") from None
        token = self._adapter.claim(claim)
        assert (token is not None) == expected, f"{claim} was answered {token}"
        if token is not None:
            known = self._tokens.get(claim.owner)
            assert known in (None, token), f"asked again, its token became {token}, not {known}"

    # --- What may happen. ---

    @rule(target=claims, what=CLAIMS, ttl=TTLS, queue=st.booleans())
    def claim(self, what: tuple[str, Kind], ttl: float, queue: bool) -> Claim:
        """Somebody new asks."""
        claim = self._make(what, ttl, queue)
        self._ask(claim)
        return claim

    @rule(claim=claims)
    def claim_again(self, claim: Claim) -> None:
        """A copy arrives: of one that holds, waits, or was withdrawn before."""
        record = self._reference.record(claim.key)
        owners = [one.claim.owner for one in record.holders] + [one.owner for one in record.waiters]
        assume(claim.owner in owners or claim.owner in self._reference.buried)
        self._ask(claim)

    @rule(claim=claims, ttl=TTLS)
    def renew(self, claim: Claim, ttl: float) -> None:
        """Somebody renews, rightly or not, maybe to another TTL."""
        claim = claim._replace(ttl=ttl * self._adapter.unit)
        expected = self._reference.renew(claim)
        assert self._adapter.renew(claim) == expected, f"renewing {claim} should give {expected}"

    @rule(claim=claims, linger=LINGERS)
    def release(self, claim: Claim, linger: float) -> None:
        """Somebody gives back what it holds, leaves the queue, or ends what is unknown."""
        linger *= self._adapter.unit
        expected = self._reference.release(claim, linger)
        got = self._adapter.release(claim, linger)
        assert got == expected, f"releasing {claim} gave {got}"

    @rule(target=claims, what=CLAIMS, ttl=TTLS)
    def withdraw_first(self, what: tuple[str, Kind], ttl: float) -> Claim:
        """A release overtakes its claim."""
        claim = self._make(what, ttl, queue=True)
        self.release(claim, 0.0)
        return claim

    @rule(name=st.sampled_from(list(KINDS)), number=st.integers(0, 2))
    def force(self, name: str, number: int) -> None:
        """Somebody breaks a lock: one holder of it, or all."""
        holders = self._reference.record(_key(name)).holders
        owners = [one.claim.owner for one in holders[number : number + 1]] if number else None
        token = self._tokens[owners[0]] if owners else None if owners is None else 1
        expected = self._reference.force(_key(name), owners)
        assert self._adapter.force(_key(name), token) == expected

    @precondition(lambda self: self._adapter.can_kill)
    @rule(claim=claims)
    def kill(self, claim: Claim) -> None:
        """A waiter dies in the queue, and nobody is told."""
        assume(claim in self._reference.record(claim.key).waiters)
        self._reference.dead.add(claim.owner)
        self._adapter.kill(claim)

    @rule(units=STEPS)
    def advance(self, units: int) -> None:
        """Time passes; who gets in by that confirms it at once, as a client does."""
        waiting = dict(self._waiting)
        self._adapter.advance(units * self._adapter.unit)
        self._reference.now += units * self._adapter.unit
        self.looks_the_same()
        for owner in waiting.keys() - self._waiting.keys() - self._reference.dead:
            self.renew(waiting[owner], waiting[owner].ttl / self._adapter.unit)

    # --- What must hold. ---

    @invariant()
    def looks_the_same(self) -> None:
        """Both show the same holders, the same queue, and tokens that only rise."""
        for name in KINDS:
            expected = self._reference.record(_key(name))
            shot = self._adapter.inspect(_key(name))
            held = {one.claim.owner: one for one in expected.holders}
            shown = {entry.owner: entry.token or 0 for entry in shot.holders}
            markers = {owner for owner, one in held.items() if one.nobody}
            assert shown.keys() - markers == held.keys() - markers, f"{shot}, not {expected}"
            assert [entry.owner for entry in shot.waiters] == [
                one.owner for one in expected.waiters
            ], f"{shot}, not {expected}"
            everybody = [one.claim for one in expected.holders] + expected.waiters
            if everybody:
                assert (shot.kind, shot.limit) == (everybody[0].family, everybody[0].limit)
            else:
                assert shot.kind is None
            self._check_tokens(name, {owner: shown[owner] for owner in shown.keys() - markers})
            for owner in shown.keys() & self._waiting.keys():
                pushed = self._adapter.pushed(self._waiting.pop(owner))
                assert pushed == shown[owner], f"{owner} was told {pushed}, not {shown[owner]}"
            for owner in [one for one, claim in self._waiting.items() if claim.name == name]:
                del self._waiting[owner]
            self._waiting |= {one.owner: one for one in expected.waiters}

    def _check_tokens(self, name: str, shown: dict[str, int]) -> None:
        new = [token for owner, token in shown.items() if owner not in self._tokens]
        assert len(new) == len({*new}), f"a token was given twice: {shown}"
        for owner, token in shown.items():
            known = self._tokens.setdefault(owner, token)
            assert known == token, f"the token of {owner} changed from {known} to {token}"
        if new:
            highest = self._highest[name]
            assert min(new) > highest, f"token {min(new)} was given after {highest}"
            self._highest[name] = max(new)

    def teardown(self) -> None:
        """End the schedule."""
        self._adapter.close()


def run_model(
    make: Callable[[], Adapter], *, examples: int = 150, steps: int = 30, shrink: bool = True
) -> None:
    """Run that many random schedules; raise AssertionError for the first that looks different."""
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    run_state_machine_as_test(
        cast(Any, lambda: Machine(make())),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=[*phases, Phase.shrink] if shrink else phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
