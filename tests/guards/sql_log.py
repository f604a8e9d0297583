"""Which statements a connection sends: as the database sees them, not the guard."""

from __future__ import annotations

import re
from typing import Any

from .sql_places import MariaDBPlace, Place, PostgresPlace

POSTGRES = r"^{} LOG:  (?:statement|execute [^:]*): (.*)$"
MARIADB = r"^[^\t]*\t+ *{} Query\t(.*)$"


class StatementLog(list[str]):
    """What one connection has sent; SQLite's appends to it itself (`set_trace_callback`)."""

    def __init__(self, place: Place, connection: Any) -> None:
        super().__init__()
        if isinstance(place, PostgresPlace):
            self._file = place.server.log_path
            self._line = POSTGRES.format(connection.info.backend_pid)
        elif isinstance(place, MariaDBPlace):
            self._file = place.server.directory / "data" / "statements"
            self._line = MARIADB.format(connection.thread_id())
        self._server = bool(place.port)
        self._seen = 0

    def news(self) -> list[str]:
        """Return what was sent since this was last called."""
        if self._server:
            self[:] = re.findall(self._line, self._file.read_text(), re.MULTILINE)
        seen, self._seen = self._seen, len(self)
        return self[seen:]
