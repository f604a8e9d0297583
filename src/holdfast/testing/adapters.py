"""Adapters: what the model test needs to know of a place where locks are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .._sync.engine import Engine
from ..lock_table import LockTable
from ..model import Claim, Grant, Outcome, Queued, Reason, Snapshot


class Adapter(Protocol):
    """One place, as far as the model goes. Times are seconds."""

    unit: float  # how many seconds one unit of model time is
    can_kill: bool  # whether a waiter can be made unreachable
    shows_time: bool  # whether `inspect` tells how long a holder has left

    def claim(self, claim: Claim) -> int | None:
        """Return the token, or None if the claim does not enter now."""

    def pushed(self, claim: Claim) -> int | None:
        """Return the token of the grant that was pushed to a waiter, if one was."""

    def renew(self, claim: Claim) -> bool:
        """Say whether it was renewed."""

    def release(self, claim: Claim, linger: float) -> bool:
        """Say whether it held."""

    def force(self, key: str, token: int | None) -> int:
        """Return how many were removed."""

    def inspect(self, key: str) -> Snapshot:
        """Show a record."""

    def kill(self, claim: Claim) -> None:
        """Let nothing reach this waiter any more."""

    def advance(self, seconds: float) -> None:
        """Let time pass."""

    def close(self) -> None:
        """Let go of everything."""


class TableAdapter:
    """A lock table with a clock of its own."""

    unit = 1.0
    can_kill = True
    shows_time = True

    def __init__(self, make: Callable[..., LockTable] = LockTable) -> None:
        self._now = 1000.0
        self._table = make(clock=lambda: self._now, micros=lambda: int(self._now * 1e6))
        self._pushed: dict[str, int] = {}
        self._dead: set[str] = set()

    def queued(self, claim: Claim) -> None:
        """See Channel."""

    def granted(self, claim: Claim, token: int, at: float) -> bool:
        """See Channel."""
        if claim.owner in self._dead:
            return False
        self._pushed[claim.owner] = token
        return True

    def revoked(self, owner: str, reason: Reason) -> None:
        """See Channel."""

    def claim(self, claim: Claim) -> int | None:
        """See Adapter."""
        answer = self._table.claim(claim, self)
        return answer if isinstance(answer, int) else None

    def pushed(self, claim: Claim) -> int | None:
        """See Adapter."""
        return self._pushed.get(claim.owner)

    def renew(self, claim: Claim) -> bool:
        """See Adapter."""
        return self._table.renew([claim])[0] is None

    def release(self, claim: Claim, linger: float) -> bool:
        """See Adapter."""
        return self._table.release(claim, linger)

    def force(self, key: str, token: int | None) -> int:
        """See Adapter."""
        return self._table.force(key, token)

    def inspect(self, key: str) -> Snapshot:
        """See Adapter."""
        return self._table.inspect(key)

    def kill(self, claim: Claim) -> None:
        """See Adapter."""
        self._dead.add(claim.owner)

    def advance(self, seconds: float) -> None:
        """See Adapter."""
        self._now += seconds

    def close(self) -> None:
        """See Adapter."""


class EngineAdapter:
    """Any blocking engine; `advance` is how its clock is moved, by sleeping if need be."""

    can_kill = False
    timeout = 10.0

    def __init__(
        self,
        engine: Engine,
        advance: Callable[[float], None],
        unit: float = 0.4,
        shows_time: bool = True,
    ) -> None:
        self.unit = unit
        self.shows_time = shows_time
        self._advance = advance
        self._engine = engine
        self._queued: dict[str, Queued] = {}
        engine.notices(lambda owner, reason: None)

    def claim(self, claim: Claim) -> int | None:
        """See Adapter."""
        answer = self._engine.claim(claim, self.timeout)
        if isinstance(answer, Grant):
            return answer.token
        self._queued[claim.owner] = answer
        return None

    def pushed(self, claim: Claim) -> int | None:
        """See Adapter."""
        grant = self._engine.wait(claim, self._queued[claim.owner], self.unit)
        return self.claim(claim) if grant is None else grant.token

    def renew(self, claim: Claim) -> bool:
        """See Adapter."""
        return self._engine.renew([claim], self.timeout)[0].outcome is Outcome.RENEWED

    def release(self, claim: Claim, linger: float) -> bool:
        """See Adapter."""
        return self._engine.release(claim, self.timeout, linger)

    def force(self, key: str, token: int | None) -> int:
        """See Adapter."""
        return self._engine.force(key, token, self.timeout)

    def inspect(self, key: str) -> Snapshot:
        """See Adapter."""
        return self._engine.inspect(key, self.timeout)

    def kill(self, claim: Claim) -> None:
        """See Adapter."""
        raise NotImplementedError

    def advance(self, seconds: float) -> None:
        """See Adapter."""
        self._advance(seconds)

    def close(self) -> None:
        """See Adapter."""
        self._engine.close()
