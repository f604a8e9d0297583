"""The nodes of this client in one session, and who of them waits for which other node to go."""

from __future__ import annotations

from collections.abc import Iterable

from .._concurrency import Mutex
from ..model import Claim
from .answers import Answer
from .errors import CERTAIN


class Node:
    """One claim, from before it is sent until it is known to be gone."""

    __slots__ = (
        *("ahead", "checked", "claim", "granted", "guarded", "leaving", "parent", "path"),
        *("token", "tried"),
    )

    def __init__(self, claim: Claim, parent: str) -> None:
        self.claim = claim
        self.parent = parent
        self.path = ""  # as long as nobody knows whether it was made
        self.token = 0
        self.tried = False  # it was sent, and may have been made
        self.granted = False
        self.leaving = False  # it was given back; whether that was heard is another matter
        self.guarded = False  # whoever deletes it is heard of
        self.checked = 0.0  # when it was last found to be there
        self.ahead: tuple[str, ...] = ()  # whom it waits for

    @property
    def waits(self) -> bool:
        """Whether it stands in the queue."""
        return bool(self.path) and not self.granted and not self.leaving

    @property
    def name(self) -> str:
        """Its name below the record."""
        return self.path.rpartition("/")[2]

    def born(self, answer: Answer) -> None:
        """Hear that it was made, whoever still waits for that."""
        if answer.exception is None:
            path, stat = answer.value
            self.token, self.path = int(stat.czxid), str(path)
        elif isinstance(answer.exception, CERTAIN):
            self.tried = False

    def forget(self) -> None:
        """Take it for one that was never made."""
        self.path, self.token = "", 0
        self.tried = self.granted = self.guarded = False


class Watches:
    """Which of our waiters are to be woken when a node goes; each node is watched once.

    A node counts as watched before the server is asked to: whatever goes wrong then wakes all who
    have joined, who look again.
    """

    def __init__(self) -> None:
        self._mutex = Mutex()
        self._watched: dict[str, set[str]] = {}

    def join(self, owner: str, paths: Iterable[str]) -> list[str]:
        """Wake this owner when one of these goes; return those that were not watched before."""
        fresh = []
        with self._mutex:
            for path in paths:
                if path not in self._watched:
                    self._watched[path] = set()
                    fresh.append(path)
                self._watched[path].add(owner)
        return fresh

    def leave(self, owner: str, paths: Iterable[str]) -> None:
        """Wake this owner no more."""
        with self._mutex:
            for path in paths:
                self._watched.get(path, set()).discard(owner)

    def fire(self, path: str) -> set[str]:
        """Return whom to wake now that this node has gone."""
        with self._mutex:
            return self._watched.pop(path, set())

    def fire_all(self) -> set[str]:
        """Return everybody: no promise holds any more."""
        with self._mutex:
            watched, self._watched = self._watched, {}
        return set().union(*watched.values())
