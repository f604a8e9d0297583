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

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
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

# In units. Time passes in whole ones, so that nothing is ever a close call.
TTLS = st.sampled_from((1.5, 3.5, 6.5))
LINGERS = st.sampled_from((0.0, 0.0, 0.0, 2.5))
STEPS = st.sampled_from((1, 2, 5))
NUMBERS = st.integers(0, 30)  # one of however many there are


def _key(name: str) -> str:
    return f"holdfast/1/{name}"


class Machine(RuleBasedStateMachine):
    """One schedule."""

    def __init__(self, adapter: Adapter) -> None:
        super().__init__()
        self._adapter = adapter
        self._reference = Reference()
        self._numbers, self._revisions = count(1), count(1)
        self._focus = "mixed"  # the name that most of this schedule is about
        self._known: list[Claim] = []  # all that were ever made
        self._waiting: dict[str, Claim] = {}  # by owner, as of the last look
        self._tokens: dict[str, int] = {}  # by owner
        self._highest = dict.fromkeys(KINDS, 0)

    def _make(self, kind: int, stray: int, ttl: float, queue: bool) -> Claim:
        name = self._focus if stray else [*KINDS][kind % len(KINDS)]
        family, mode, path, limit = KINDS[name][kind % len(KINDS[name])]
        claim = Claim(
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
        self._known.append(claim)
        return claim

    def _pick(self, number: int) -> Claim:
        """Return somebody: who is in the record comes first, but who is not may be it too."""
        chosen = self._in_record() * 3 + self._known
        return chosen[number % len(chosen)]

    def _in_record(self) -> list[Claim]:
        records = [self._reference.record(_key(name)) for name in KINDS]
        return [
            claim
            for record in records
            for claim in [*(one.claim for one in record.holders), *record.waiters]
        ]

    def _ask(self, claim: Claim) -> None:
        try:
            expected = self._reference.claim(claim)
        except LockMismatch:
            try:
                token = self._adapter.claim(claim)
            except LockMismatch:
                return
            raise AssertionError(f"another kind was not refused but answered {token}") from None
        try:
            token = self._adapter.claim(claim)
        except LockMismatch as error:
            raise AssertionError(f"{claim} was refused as another kind") from error
        assert (token is not None) == expected, f"{claim} was answered {token}"
        if token is not None:
            known = self._tokens.get(claim.owner)
            assert known in (None, token), f"asked again, its token became {token}, not {known}"

    # --- What may happen. ---

    @initialize(focus=st.sampled_from([*KINDS]))
    def focus(self, focus: str) -> None:
        """Choose what this schedule is about: rare things need many claims on one name."""
        self._focus = focus

    @rule(kind=NUMBERS, stray=st.integers(0, 5), ttl=TTLS, queue=st.booleans())
    def claim(self, kind: int, stray: int, ttl: float, queue: bool) -> None:
        """Somebody new asks."""
        self._ask(self._make(kind, stray, ttl, queue))

    @rule(kinds=st.lists(NUMBERS, min_size=2, max_size=5), ttl=TTLS)
    def crowd(self, kinds: list[int], ttl: float) -> None:
        """Several queue up, one after the other: most mistakes need company."""
        for kind in kinds:
            self._ask(self._make(kind, 1, ttl, queue=True))

    @precondition(lambda self: self._known)
    @rule(number=NUMBERS)
    def claim_again(self, number: int) -> None:
        """A copy arrives: of one that holds, waits, or was withdrawn before."""
        withdrawn = [one for one in self._known if one.owner in self._reference.buried]
        copies = self._in_record() + withdrawn
        if copies:
            self._ask(copies[number % len(copies)])

    @precondition(lambda self: self._known)
    @rule(number=NUMBERS)
    def renew(self, number: int) -> None:
        """Somebody renews, rightly or not, by the claim that it first sent."""
        owner = self._pick(number).owner
        self._renew(next(one for one in self._known if one.owner == owner))

    @precondition(lambda self: self._known)
    @rule(number=NUMBERS, ttl=TTLS, overtakes=st.booleans())
    def extend(self, number: int, ttl: float, overtakes: bool) -> None:
        """Somebody sets another TTL, and a renewal from before that may come after it."""
        claim = self._pick(number)
        changed = {"ttl": ttl * self._adapter.unit, "revision": next(self._revisions)}
        self._renew(claim._replace(**changed))  # type: ignore[arg-type]
        if overtakes:
            self._renew(claim)

    def _renew(self, claim: Claim) -> None:
        expected = self._reference.renew(claim)
        assert self._adapter.renew(claim) == expected, f"renewing {claim} should give {expected}"

    @precondition(lambda self: self._known)
    @rule(number=NUMBERS, linger=LINGERS, overtakes=st.booleans())
    def release(self, number: int, linger: float, overtakes: bool) -> None:
        """Somebody gives back what it holds, leaves the queue, or ends what is unknown.

        A renewal from before that may come after it.
        """
        claim = self._pick(number)
        self._release(claim, linger * self._adapter.unit)
        if overtakes:
            self._renew(claim)

    def _release(self, claim: Claim, linger: float = 0.0) -> None:
        expected = self._reference.release(claim, linger)
        got = self._adapter.release(claim, linger)
        assert got == expected, f"releasing {claim} gave {got}"

    @rule(kind=NUMBERS, ttl=TTLS)
    def withdraw_first(self, kind: int, ttl: float) -> None:
        """A release overtakes its claim."""
        self._release(self._make(kind, 1, ttl, queue=True))

    @rule(number=st.integers(0, 2))
    def force(self, number: int) -> None:
        """Somebody breaks a lock: one holder of it, or all."""
        key = _key(self._focus)
        holders = self._reference.record(key).holders
        if number == 0:
            expected = self._reference.force(key, None)
            assert self._adapter.force(key, None) == expected
        elif len(holders) >= number:
            owner = holders[number - 1].claim.owner
            token = self._tokens[owner]
            expected = self._reference.force(key, [owner])
            assert self._adapter.force(key, token) == expected
        else:
            assert self._adapter.force(key, 1) == 0

    @precondition(lambda self: self._adapter.can_kill and self._waiting)
    @rule(number=NUMBERS)
    def kill(self, number: int) -> None:
        """A waiter dies in the queue, and nobody is told."""
        claim = [*self._waiting.values()][number % len(self._waiting)]
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
            self._renew(waiting[owner])

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
            for entry in shot.holders if self._adapter.shows_time else ():
                left = held[entry.owner].until - self._reference.now
                close = abs(entry.expires_in - left) < 0.4 * self._adapter.unit
                assert close, f"{entry} should have {left:g} s left"
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
            report_multiple_bugs=False,
            phases=[*phases, Phase.shrink] if shrink else phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
