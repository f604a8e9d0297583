"""The resource that locks protect: a counter with a guard (S23), and one without beside it.

Rule 1: work begins by recording its token, by the rule that every guard applies (`fencing.judge`).
Rule 2: a write is taken only if no newer token has been seen since it began.
Rule 3: the register is durable: no fault of the lock server touches it.
"""

from __future__ import annotations

from ...fencing import Fence, Floors, judge
from ...model import Mode
from .history import History, Wrote

DOMAIN = "simulation"


class Register:
    """A guarded counter, with an unguarded twin that shows what the guard is for."""

    def __init__(self, name: str, history: History) -> None:
        self.name = name
        self.value = 0
        self.unguarded = 0
        self._floors: Floors | None = None
        self._history = history

    def begin(self, token: int) -> int:
        """Record an exclusive holder's token and return the value."""
        self._admit(token, Mode.EXCLUSIVE)
        return self.value

    def read(self, token: int) -> int:
        """Record a shared holder's token and return the value."""
        self._admit(token, Mode.SHARED)
        return self.value

    def write(self, at: float, token: int, based_on: int) -> None:
        """Write one more than was read."""
        self._admit(token, Mode.EXCLUSIVE)
        self._history.add(Wrote(at, self.name, token, based_on, self.value, True))
        self.value = based_on + 1

    def write_unguarded(self, at: float, token: int, based_on: int) -> None:
        """Do the same without looking at the token."""
        self._history.add(Wrote(at, self.name, token, based_on, self.unguarded, False))
        self.unguarded = based_on + 1

    def _admit(self, token: int, mode: Mode) -> None:
        self._floors = judge(self.name, self._floors, Fence(token, DOMAIN, mode))
