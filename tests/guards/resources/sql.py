"""A counter in a row of a database, and the SQL guard on it, in two forms."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pymysql  # type: ignore[import-untyped]

from holdfast.guards import Fence, SQLGuard
from holdfast.testing.servers import (
    MariaDBServer,
    PostgresServer,
    mariadb_program,
    need,
    postgres_program,
)

from ..contest import Resource

READ = "SELECT value FROM counter"


class SQLResource(Resource):
    """A counter that is read in one transaction and written in another; subclasses connect."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.connection = self.connect()
        self._guard = SQLGuard(self.connection)

    def connect(self) -> Any:
        """Return a connection as its driver makes it."""
        raise NotImplementedError

    def create(self) -> None:
        self._run("CREATE TABLE counter (id INTEGER PRIMARY KEY, value BIGINT NOT NULL)")
        self._run("INSERT INTO counter VALUES (1, 0)")
        self.connection.commit()
        self._guard.create()

    def value(self) -> int:
        found = self._run(READ)
        self.connection.rollback()
        return found

    def increment(self, fence: Fence, guarded: bool, pause: Callable[[], None]) -> None:
        if guarded:
            self.increment_guarded(fence, pause)
            return
        read = self._run(READ)
        self.connection.commit()
        pause()
        self._write(read + 1)
        self.connection.commit()

    def increment_guarded(self, fence: Fence, pause: Callable[[], None]) -> None:
        """Record the token before the first read, and again with the write."""
        with self._guard.transaction("counter", fence):
            read = self._run(READ)
        pause()
        with self._guard.transaction("counter", fence):
            self._write(read + 1)

    def close(self) -> None:
        self.connection.close()

    def _write(self, value: int) -> None:
        self._run(f"UPDATE counter SET value = {value}")

    def _run(self, statement: str) -> int:
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement)
            return int(cursor.fetchone()[0]) if cursor.description else 0


class _Inside(SQLResource):
    """A counter that is read and written in one transaction.

    It locks the row from its first statement on, so a holder can only be overtaken before it.
    """

    def increment_guarded(self, fence: Fence, pause: Callable[[], None]) -> None:
        pause()
        with self._guard.transaction("counter", fence):
            self._write(self._run(READ) + 1)


class SQLiteRow(SQLResource):
    """In a file."""

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        yield str(folder / "counter.db")

    def connect(self) -> Any:
        return sqlite3.connect(self.address, timeout=60)


class PostgresRow(SQLResource):
    """In PostgreSQL."""

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        with PostgresServer(need(postgres_program)) as server:
            yield server.url

    def connect(self) -> Any:
        return psycopg.connect(self.address)


class MariaDBRow(SQLResource):
    """In MariaDB."""

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        with MariaDBServer(need(mariadb_program)) as server:
            yield str(server.port)

    def connect(self) -> Any:
        return pymysql.connect(
            host="127.0.0.1", port=int(self.address), user="root", database="test"
        )


class SQLiteInside(_Inside, SQLiteRow):
    """In a file, in one transaction."""


class PostgresInside(_Inside, PostgresRow):
    """In PostgreSQL, in one transaction."""


class MariaDBInside(_Inside, MariaDBRow):
    """In MariaDB, in one transaction."""
