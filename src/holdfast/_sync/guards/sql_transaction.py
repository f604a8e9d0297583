"""(Generated from _async/guards/sql_transaction.py by tools/unasync.py: do not edit.) The transaction that a SQL guard opens: a with statement that begins with the guard."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from ...fencing import Floors
from ...guards.sql_row import Entries, name_of, names_of

if TYPE_CHECKING:
    from .sql import SQLGuard


class SQLTransaction:
    """Commits what was done inside, with the token; rolls both back on an error."""

    _floors: list[Floors]

    def __init__(self, guard: SQLGuard, entries: Entries) -> None:
        self._guard = guard
        self._entries = entries

    def __enter__(self) -> None:
        self._floors = self._guard._enter(self._entries)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._guard._leave(names_of(self._entries), done=error is None)
        if error is None:
            for (resource, fence), floors in zip(self._entries, self._floors, strict=True):
                self._guard._accepted(name_of(resource), floors, fence)
