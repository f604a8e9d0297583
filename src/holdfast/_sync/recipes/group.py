"""(Generated from _async/recipes/group.py by tools/unasync.py: do not edit.) Several locks as one, taken in one fixed order, all or none: no deadlock by order (S28)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ...errors import NotAcquired
from ...model import Seconds, check_patience
from ...rules import conflict
from ..lease import Lease
from .entrance import Entrance
from .group_lease import LeaseGroup
from .lock import Lock


class Group(Entrance[LeaseGroup]):
    """A lock over several locks; its lease is a LeaseGroup."""

    def __init__(self, locks: Sequence[Lock]) -> None:
        if not locks:
            raise ValueError("all_of() needs at least one lock.")
        super().__init__(all(lock._options.cancel_on_loss for lock in locks))
        self._locks = tuple(locks)
        self._ordered = sorted(locks, key=lambda lock: lock.order)
        for one, other in combinations(self._ordered, 2):
            if one.order == other.order:
                raise ValueError(f"all_of() was given {other.name!r} twice; name each lock once.")
            if one.order[:2] == other.order[:2] and conflict(one._terms, other._terms):
                raise ValueError(
                    f"all_of() was given {one.name!r} and {other.name!r}, which exclude each "
                    "other: it would wait for itself; the upper one covers both."
                )

    @property
    def name(self) -> str:
        """The names of all parts."""
        return " + ".join(lock.name for lock in self._locks)

    def acquire(
        self, blocking: bool = True, timeout: Seconds | None = None
    ) -> LeaseGroup | None:
        """Return a LeaseGroup, or None, holding nothing, when not all could be had in time.

        `timeout` is the budget for all together; None = the shortest of the locks' own.
        """
        shortest = min(lock._timeout for lock in self._locks)
        wait = check_patience(shortest, blocking, timeout)
        clock = self._locks[0]._runtime.clock
        end = clock() + wait
        taken: dict[Lock, Lease] = {}
        try:
            for lock in self._ordered:
                lease = lock.acquire(timeout=_budget(end - clock()) if wait else 0)
                if lease is None:
                    break
                taken[lock] = lease
            else:
                parts = [taken[lock] for lock in self._locks]
                return LeaseGroup(parts, self._cancel_on_loss)
        except BaseException:
            _let_go(taken)
            raise
        _let_go(taken)
        return None

    def locked(self) -> bool:
        """Say whether any part is locked now."""
        for lock in self._ordered:
            if lock.locked():
                return True
        return False

    def _refusal(self) -> NotAcquired:
        for lock in self._ordered:
            if lock.locked():
                return lock._refusal()
        return NotAcquired(f"{self.name!r} were not all acquired in time; try later.")


def _budget(left: float) -> float:
    """Turn what is left of the time into a timeout: for ever is -1."""
    return -1 if left == float("inf") else max(0.0, left)


def _let_go(taken: dict[Lock, Lease]) -> None:
    for lease in reversed(list(taken.values())):
        lease.release()
