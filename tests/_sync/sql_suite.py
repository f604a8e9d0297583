"""(Generated from _async/sql_suite.py by tools/unasync.py: do not edit.) What tests of the SQL guard stand on: a connection of every kind, and a guard on it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Any, ClassVar

import pytest

from holdfast._concurrency import sleep
from holdfast.events import Event
from holdfast.fencing import Fence
from holdfast.model import Mode
from holdfast.testing.running import Runner
from tests.guards.fences import DOMAIN
from tests.guards.sql_databases import WAYS, Database, SQLGuard
from tests.guards.sql_places import PATIENCE, Place, stop_places_at_the_end


class SQLSuite:
    """A test, run on every way to reach a database; each has a resource of its own."""

    ways: ClassVar[list[str]] = WAYS
    way: str
    database: Database
    guard: SQLGuard
    heard: list[Event]

    def __init_subclass__(cls) -> None:
        for name, test in list(vars(cls).items()):
            if name.startswith("test_"):
                setattr(cls, name, Runner.plain(test))

    @pytest.fixture(autouse=True)
    def _reach(self, way: str, request: pytest.FixtureRequest) -> None:
        stop_places_at_the_end(request.session)
        self.way = way

    def conduct(self, test: Callable[..., None], **arguments: Any) -> None:
        """Give each test a connection, a guard on it, and a row to work on."""
        self.resource = f"orders/{token_hex(6)}"
        self._databases: list[Database] = []
        try:
            self.database = self.connect()
            self.guard, self.heard = SQLGuard(self.database.connection), []
            self.guard.listen(self.heard.append)
            self.place.look(f"INSERT INTO work VALUES ('{self.resource}', 0)")
            test(self, **arguments)
        finally:
            for database in reversed(self._databases):
                database.close()

    @property
    def place(self) -> Place:
        """The database itself."""
        return self.database.place

    def connect(self) -> Database:
        """Return one more connection, closed at the end of the test."""
        database = Database(self.way)
        database.open()
        self._databases.append(database)
        return database

    def other(self, **options: Any) -> tuple[Database, SQLGuard]:
        """Return one more connection, and a guard on it."""
        database = self.connect()
        return database, SQLGuard(database.connection, **options)

    def fence(self, token: int, mode: Mode = Mode.EXCLUSIVE, domain: str = DOMAIN) -> Fence:
        return Fence(token, domain, mode)

    def add(self, database: Database | None = None) -> None:
        """Add one to the row, in whatever transaction there is."""
        (database or self.database).run(
            f"UPDATE work SET value = value + 1 WHERE name = '{self.resource}'"
        )

    def work(self, token: int, mode: Mode = Mode.EXCLUSIVE, domain: str = DOMAIN) -> None:
        """Add one to the row, with this token."""
        with self.guard.transaction(self.resource, Fence(token, domain, mode)):
            self.add()

    def value(self) -> int:
        """Return what the row says, as it was committed."""
        return self.place.value(self.resource)

    def floors(self) -> list[tuple[Any, ...]]:
        """Return what the guard remembers, as it was committed."""
        return self.place.floors(self.resource)

    def until_blocked(self) -> None:
        """Return when a statement waits for another transaction, where that can be seen."""
        end = time.monotonic() + PATIENCE
        while not self.place.blocked():
            assert time.monotonic() < end, "waited in vain"
            sleep(0.005)

    def begin(self) -> None:
        """Begin a transaction as a user does, with a statement that reads."""
        if self.database.autocommit:
            self.database.run("BEGIN")
        self.database.run("SELECT value FROM work")
