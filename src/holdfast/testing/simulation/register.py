"""The resource that locks protect: a counter with a guard (S23), and one without beside it.

Rule 1: exclusive work begins by recording its token; it needs a token not below either floor, and
        raises its own. Reading raises the floor of readers, and needs one not below the other's.
Rule 2: a write is taken only if no newer token has been seen since it began.
Rule 3: the register is durable: no fault of the lock server touches it.
"""

from __future__ import annotations

from ...errors import StaleToken
from .history import History, Wrote


class Register:
    """A guarded counter, with an unguarded twin that shows what the guard is for."""

    def __init__(self, name: str, history: History) -> None:
        self.name = name
        self.value = 0
        self.unguarded = 0
        self._exclusive = 0
        self._shared = 0
        self._history = history

    def begin(self, token: int) -> int:
        """Record an exclusive holder's token and return the value."""
        self._admit(token)
        self._exclusive = token
        return self.value

    def read(self, token: int) -> int:
        """Record a shared holder's token and return the value."""
        if token < self._exclusive:
            raise self._stale(token)
        self._shared = max(self._shared, token)
        return self.value

    def write(self, at: float, token: int, based_on: int) -> None:
        """Write one more than was read."""
        self._admit(token)
        self._history.add(Wrote(at, self.name, token, based_on, self.value, True))
        self.value = based_on + 1

    def write_unguarded(self, at: float, token: int, based_on: int) -> None:
        """Do the same without looking at the token."""
        self._history.add(Wrote(at, self.name, token, based_on, self.unguarded, False))
        self.unguarded = based_on + 1

    def _admit(self, token: int) -> None:
        if token < self._exclusive or token < self._shared:
            raise self._stale(token)

    def _stale(self, token: int) -> StaleToken:
        return StaleToken(f"{self.name!r} has seen a newer token than {token}.", name=self.name)
