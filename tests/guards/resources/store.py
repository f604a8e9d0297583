"""A counter in a store that only compares and sets: a table of versions, between processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.guards import Fence, StoreGuard
from tests.guards.contest import Resource

NAME = "counter"


class GuardedStore(Resource):
    """One row, which is replaced if its version is still the one that was read."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._table = sqlite3.connect(address, timeout=60, isolation_level=None)
        self._guard = StoreGuard(self.load, self.save)

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        """A file needs no server."""
        yield str(folder / "store.db")

    def create(self) -> None:
        """See Resource."""
        self._table.execute("PRAGMA journal_mode = WAL")
        self._table.execute("CREATE TABLE item (name TEXT, data INT, fence TEXT, version INT)")
        self._table.execute("INSERT INTO item VALUES (?, 0, NULL, 1)", (NAME,))

    def load(self, resource: str) -> tuple[int, str | None, int]:
        """See StoreGuard."""
        select = "SELECT data, fence, version FROM item WHERE name = ?"
        row: tuple[int, str | None, int] = self._table.execute(select, (resource,)).fetchone()
        return row

    def save(self, resource: str, data: int, fence: str, version: int) -> bool:
        """See StoreGuard."""
        update = (
            "UPDATE item SET data = ?, fence = ?, version = version + 1"
            " WHERE name = ? AND version = ?"
        )
        return self._table.execute(update, (data, fence, resource, version)).rowcount == 1

    def value(self) -> int:
        """See Resource."""
        return self.load(NAME)[0]

    def increment(self, fence: Fence, guarded: bool, pause: Callable[[], None]) -> None:
        """See Resource."""
        if guarded:
            with self._guard.transaction(NAME, fence) as item:
                seen = item.read()
                pause()
                item.write(seen + 1)
        else:
            seen = self.value()
            pause()
            self._table.execute("UPDATE item SET data = ? WHERE name = ?", (seen + 1, NAME))

    def close(self) -> None:
        """See Resource."""
        self._table.close()
