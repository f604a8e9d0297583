"""Faults and plans: what a faulty engine does to which call, as plain data.

Rule 1: a request takes `arrives` seconds to the engine and its answer `answers` seconds back;
        infinity is never, None is "when the test calls `land()`".
Rule 2: the caller hears that there is no answer after `notices` seconds, at the latest after its
        own timeout (unless `obeys` is False). What is under way by then still arrives.
Rule 3: a plan decides by verb and number of the call, counted per verb from 1, and by nothing
        else: the same seed gives the same faults however calls of different verbs interleave.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

VERBS = ("claim", "wait", "renew", "release", "inspect", "list", "force", "ping")


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call."""

    what: str
    arrives: float | None = 0.0
    answers: float = 0.0
    notices: float = math.inf
    copies: int = 1
    obeys: bool = True
    refused: bool = False  # the caller can tell that nothing happened: EngineUnavailable
    shifted: bool = False  # the answer is that of the call before
    believed: bool = False  # … and nobody notices
    pushes: bool = True  # False: a wait hears nothing, a notice is not passed on
    error: BaseException | None = None  # raised instead of sending anything


def pause() -> Fault:
    """Do as told, but let others run before and after: a place to be cancelled at."""
    return Fault("pause")


def delay(there: float, back: float = 0.0) -> Fault:
    """Take `there` seconds to arrive and `back` to answer; too slow for the timeout is unknown."""
    return Fault("delay", arrives=there, answers=back)


def drop(after: float = math.inf, *, refused: bool = False) -> Fault:
    """Lose the request: no answer `after` seconds, at the latest after the timeout.

    With `refused` the caller can tell that nothing happened (EngineUnavailable).
    """
    return Fault("drop", arrives=math.inf, notices=after, refused=refused)


def lose_reply(after: float = 0.0) -> Fault:
    """Execute, then raise OutcomeUnknown `after` seconds, at the latest after the timeout."""
    return Fault("lose_reply", answers=math.inf, notices=after)


def late(seconds: float | None = None, after: float = 0.0) -> Fault:
    """Raise OutcomeUnknown `after` seconds; execute `seconds` after the call, or at `land()`."""
    return Fault("late", arrives=seconds, notices=after)


def twice() -> Fault:
    """Execute two copies of the request; the caller hears the first answer."""
    return Fault("twice", copies=2)


def out_of_turn(*, believed: bool = False) -> Fault:
    """Execute, but answer with what the call before was told.

    A link that compares the echoed owner notices, and raises OutcomeUnknown. With `believed` it
    does not, and hands out the last answer of the same verb: what such a link is there to prevent.
    """
    return Fault("out_of_turn", shifted=True, believed=believed)


def block(seconds: float) -> Fault:
    """Execute only after `seconds`, or `unblock()`, keeping the caller beyond its timeout."""
    return Fault("block", arrives=seconds, obeys=False)


def lose_push() -> Fault:
    """Let a `wait` never hear of its grant, or (verb "notice") a holder never of its removal."""
    return Fault("lose_push", pushes=False)


def fail(error: BaseException) -> Fault:
    """Raise this at once; nothing is sent."""
    return Fault("fail", error=error)


Numbers = int | range | None  # which calls: this one, these, or every one
Rule = tuple[str, Numbers, Fault]
Plan = Callable[[str, int], Fault | None]


def as_plan(plan: Plan | Iterable[Rule]) -> Plan:
    """Return a plan as a function; in a list the first rule that fits decides."""
    if callable(plan):
        return plan
    rules = list(plan)

    def decide(verb: str, number: int) -> Fault | None:
        for rule_verb, numbers, fault in rules:
            if verb == rule_verb and (
                numbers is None
                or (number in numbers if isinstance(numbers, range) else number == numbers)
            ):
                return fault
        return None

    return decide


def always(fault: Fault, verbs: Sequence[str] = VERBS) -> Plan:
    """Return the plan by which each of these verbs meets the same fault every time."""
    return as_plan([(verb, None, fault) for verb in verbs])


def random_plan(
    seed: int, faults: Sequence[Fault], rate: float = 0.1, verbs: Sequence[str] = VERBS
) -> Plan:
    """Return the plan by which a share of the calls meets one of the faults, decided by `seed`."""

    def decide(verb: str, number: int) -> Fault | None:
        chance = random.Random(f"{seed}/{verb}/{number}")
        return chance.choice(faults) if verb in verbs and chance.random() < rate else None

    return decide
