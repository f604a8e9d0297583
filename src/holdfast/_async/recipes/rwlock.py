"""Read-write locks, on one name or on a node of a tree and all below it (S3, S4)."""

from __future__ import annotations

from collections.abc import Callable

from ...model import Mode
from .lock import AsyncLock


class AsyncRWLock:
    """Two locks under one name: many may read, one may write; waiting writers are not starved."""

    def __init__(self, name: str, make: Callable[[Mode], AsyncLock]) -> None:
        self.name = name
        self._make = make

    def read(self) -> AsyncLock:
        """Return the shared lock."""
        return self._make(Mode.SHARED)

    def write(self) -> AsyncLock:
        """Return the exclusive lock."""
        return self._make(Mode.EXCLUSIVE)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class AsyncTree(AsyncRWLock):
    """The same on a path: it covers the node and everything below it."""
