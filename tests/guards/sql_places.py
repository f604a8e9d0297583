"""Databases to test the SQL guard on, started when first needed, and looked at from outside."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pymysql  # type: ignore[import-untyped]
import pytest

from holdfast.guards.sql_dialects import sql_schema
from holdfast.testing.servers import (
    MariaDBServer,
    PostgresServer,
    mariadb_program,
    need,
    postgres_program,
)

PATIENCE = 30.0
WORK = "CREATE TABLE IF NOT EXISTS work (name VARCHAR(100) PRIMARY KEY, value BIGINT NOT NULL)"
STOCK = (
    "CREATE TABLE IF NOT EXISTS stock (name VARCHAR(100) PRIMARY KEY, leftover BIGINT,"
    " fence BIGINT DEFAULT 0, origin VARCHAR(255))"
)


class Place:
    """A database; `sqlite`, `postgresql` or `mariadb`."""

    dialect: str
    port = 0  # where there is a server

    def start(self) -> None:
        """Start it, and make the tables that tests work on."""
        self._watcher = self.connect()
        for statement in (WORK, STOCK, *sql_schema(self.dialect).split(";\n")[:-1]):
            self.look(statement)

    def stop(self) -> None:
        """Stop it."""
        self._watcher.close()

    def connect(self) -> Any:
        """Return a blocking connection that commits every statement."""
        raise NotImplementedError

    def look(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement on a connection that nobody else uses; return what it finds."""
        with closing(self._watcher.cursor()) as cursor:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def floors(self, resource: str, prefix: str = "holdfast_") -> list[tuple[Any, ...]]:
        """Return domain and floors of a resource, as they were committed."""
        text = resource.replace("'", "''")
        return self.look(
            f"SELECT domain, exclusive_floor, shared_floor FROM {prefix}fence"
            f" WHERE resource = '{text}'"
        )

    def value(self, name: str) -> int:
        """Return the value of a row of `work`, as it was committed."""
        return int(self.look(f"SELECT value FROM work WHERE name = '{name}'")[0][0])

    def blocked(self) -> bool:
        """Say whether a statement waits for another transaction; True where that is not seen."""
        return True


class SQLitePlace(Place):
    """A file."""

    dialect = "sqlite"

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-sqlite-")
        self.path = str(Path(self._folder.name) / "data.db")
        with closing(self.connect()) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        super().start()

    def stop(self) -> None:
        super().stop()
        self._folder.cleanup()

    def connect(self) -> Any:
        return sqlite3.connect(
            self.path, isolation_level=None, timeout=PATIENCE, check_same_thread=False
        )


class PostgresPlace(Place):
    """A PostgreSQL server, which logs every statement."""

    dialect = "postgresql"

    def start(self) -> None:
        need(postgres_program)
        self.server = PostgresServer(options={"log_statement": "all"}).start()
        self.port = self.server.port
        super().start()

    def stop(self) -> None:
        super().stop()
        self.server.stop()

    def connect(self) -> Any:
        return psycopg.connect(self.server.url, autocommit=True)

    def blocked(self) -> bool:
        return bool(self.look("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))


class MariaDBPlace(Place):
    """A MariaDB server, which logs every statement."""

    dialect = "mariadb"

    def start(self) -> None:
        need(mariadb_program)
        options = {"general-log": "1", "log-output": "FILE", "general-log-file": "statements"}
        self.server = MariaDBServer(options=options).start()
        self.port = self.server.port
        super().start()

    def stop(self) -> None:
        super().stop()
        self.server.stop()

    def connect(self) -> Any:
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", database="test", autocommit=True
        )

    def floors(self, resource: str, prefix: str = "holdfast_") -> list[tuple[Any, ...]]:
        found = super().floors(resource, prefix)
        return [(domain.decode(), *floors) for domain, *floors in found]

    def blocked(self) -> bool:
        # InnoDB's own table of waits is not brought up to date while it is asked often.
        found = self.look("SELECT state, time_ms FROM information_schema.processlist")
        return any(state in ("Update", "Updating") and time > 20 for state, time in found)


_KINDS: dict[str, type[Place]] = {
    place.dialect: place for place in (SQLitePlace, PostgresPlace, MariaDBPlace)
}
_started: dict[str, Place] = {}
_sessions: list[pytest.Session] = []


def place(dialect: str) -> Place:
    """Return the database of that kind, which runs until `stop_places`."""
    if dialect not in _started:
        made = _KINDS[dialect]()
        made.start()
        _started[dialect] = made
    return _started[dialect]


def stop_places() -> None:
    """Stop all that were started."""
    while _started:
        _started.popitem()[1].stop()


def stop_places_at_the_end(session: pytest.Session) -> None:
    """Let those that are started serve all tests of this run: starting one takes a second."""
    if session not in _sessions:
        _sessions.append(session)
        session.addfinalizer(stop_places)
