"""A nemesis: one kind of fault, with what it needs and which promise it puts to the test."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ..model import Fault, Guarantees
from .scene import Scene

CLIENTS, AROUND = "clients", "around"  # one fault of each side at a time, both at once

Act = Callable[[Scene, random.Random], None]


@dataclass(frozen=True, slots=True)
class Nemesis:
    """A fault that can be done to a run. `act` begins it, lets it last, and always undoes it."""

    name: str
    number: str  # in reliability.md §3.2
    says: str
    act: Act
    faults: frozenset[Fault]  # what it is made of: an engine that bears all of them bears it
    needs: tuple[str, ...] = ()  # hooks of the harness
    side: str = AROUND
    bearable: bool = True  # False: nobody promises exclusion under it
    several: bool = False  # makes sense only where there are several servers
    costly: bool = False  # servers must be prepared for it; not done unless it is asked for
    steps_clock: bool = False
    forgets: bool = False  # data are lost: tokens then follow the clock alone

    def promised(self, guarantees: Guarantees) -> bool:
        """Say whether the engine promises exclusion under this."""
        return self.bearable and self.faults <= guarantees.exclusive


def clash(one: Nemesis, other: Nemesis) -> bool:
    """Say whether two are never done in one run: no token survives data loss and a clock set back.

    That is the exception that reliability.md §2.9 names; everything else may come together.
    """
    return (one.steps_clock and other.forgets) or (other.steps_clock and one.forgets)
