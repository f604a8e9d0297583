"""When a command is told to stop, and when it is killed (S32): pure, time is an argument."""

from __future__ import annotations

from typing import NamedTuple

from ...model import seconds

GRACE_MOST = 10.0
MARGIN_LEAST = 0.2


class Timetable(NamedTuple):
    """How the child is stopped before a deadline."""

    ttl: float
    grace: float

    @classmethod
    def make(cls, ttl: float, grace: float | None) -> Timetable:
        """Return the timetable, or raise ValueError: a healthy lease must never come near it.

        A lease is renewed when a third of its TTL has passed, so half of it is always left.
        """
        ttl = seconds(ttl, "--ttl")
        table = cls(ttl, min(GRACE_MOST, ttl / 3) if grace is None else seconds(grace, "--grace"))
        if not 0 <= table.grace <= ttl / 2:
            raise ValueError(
                f"--grace must be between 0 s and half the --ttl ({ttl / 2:g} s), not "
                f"{table.grace:g} s: renewal needs the other half."
            )
        if table.margin > ttl / 2:
            raise ValueError(
                f"--ttl must be at least {2 * MARGIN_LEAST:g} s here, not {ttl:g} s: the command "
                f"is killed {MARGIN_LEAST:g} s before the lock could go to another."
            )
        return table

    @property
    def margin(self) -> float:
        """How long before the deadline the child is killed."""
        return max(MARGIN_LEAST, self.ttl / 20)

    def kill_at(self, deadline: float) -> float:
        """Return when the child must be killed."""
        return deadline - self.margin

    def term_at(self, deadline: float) -> float:
        """Return when the child is told to stop, never later than it is killed."""
        return min(self.kill_at(deadline), deadline - self.grace)

    @property
    def beat(self) -> float:
        """How often the front gives a sign of life."""
        return self.ttl / 10
