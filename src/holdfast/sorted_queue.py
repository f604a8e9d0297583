"""Who enters from a queue that the engine itself keeps in order, and whom the others wait for.

Where a log orders the claims (ZooKeeper, etcd), everybody sees the same queue: those inside stand
first, and nobody is ever put before another.

Rule 1: who is inside is what `rules.admit` says of the whole queue; nothing else is stored.
Rule 2: one may only leave. So who has entered stays inside, and the blockers of a waiter only get
        fewer: once the last of those it has seen is gone, it is worth looking again.
Rule 3: a waiter watches one entry, the last of its blockers; with a limit anybody who leaves before
        it moves it up, and it is inside once `surplus` of them have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from .model import Mode
from .rules import Entrant, admit, conflict

E = TypeVar("E", bound=Entrant)


class Standing(NamedTuple, Generic[E]):
    """Where one entry stands: inside if nobody blocks it."""

    blockers: tuple[E, ...]  # earlier entries that keep it out, in order; the last is to be watched
    position: int  # how many wait before it
    surplus: int = 0  # with a limit: how many of the blockers must leave

    @property
    def inside(self) -> bool:
        """Whether it has entered."""
        return not self.blockers


def standing(queue: Sequence[E], at: int, limit: int = 0) -> Standing[E]:
    """Return where the entry number `at` of a queue in order stands; who is behind is no matter."""
    me, earlier = queue[at], queue[:at]
    if limit:
        if at < limit:
            return Standing((), 0)
        return Standing(tuple(earlier), at - limit, at - limit + 1)
    if me.mode is Mode.EXCLUSIVE and not me.path:
        blockers = tuple(earlier)  # the same without a look at each: queues of mutexes are long
    else:
        blockers = tuple(one for one in earlier if conflict(one, me))
    if not blockers:
        return Standing((), 0)
    return Standing(blockers, len(earlier) - len(admit((), earlier, 0)))


def divide(queue: Sequence[E], limit: int = 0) -> tuple[list[E], list[E]]:
    """Return who is inside and who waits, each in order."""
    inside = admit((), queue, limit)
    entered = {id(one) for one in inside}
    return inside, [one for one in queue if id(one) not in entered]
