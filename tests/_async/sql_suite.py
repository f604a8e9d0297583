"""What tests of the SQL guard stand on: a connection of every kind, and a guard on it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Any, ClassVar

import pytest

from holdfast._concurrency import asleep
from holdfast.events import Event
from holdfast.fencing import Fence
from holdfast.model import Mode
from holdfast.testing.running import AsyncRunner
from tests.guards.fences import DOMAIN
from tests.guards.sql_databases import WAYS, AsyncDatabase, AsyncSQLGuard
from tests.guards.sql_places import PATIENCE, Place, stop_places_at_the_end


class AsyncSQLSuite:
    """A test, run on every way to reach a database; each has a resource of its own."""

    ways: ClassVar[list[str]] = WAYS
    way: str
    database: AsyncDatabase
    guard: AsyncSQLGuard
    heard: list[Event]

    def __init_subclass__(cls) -> None:
        for name, test in list(vars(cls).items()):
            if name.startswith("test_"):
                setattr(cls, name, AsyncRunner.plain(test))

    @pytest.fixture(autouse=True)
    def _reach(self, way: str, request: pytest.FixtureRequest) -> None:
        stop_places_at_the_end(request.session)
        self.way = way

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Give each test a connection, a guard on it, and a row to work on."""
        self.resource = f"orders/{token_hex(6)}"
        self._databases: list[AsyncDatabase] = []
        try:
            self.database = await self.connect()
            self.guard, self.heard = AsyncSQLGuard(self.database.connection), []
            self.guard.listen(self.heard.append)
            self.place.look(f"INSERT INTO work VALUES ('{self.resource}', 0)")
            await test(self, **arguments)
        finally:
            for database in reversed(self._databases):
                await database.close()

    @property
    def place(self) -> Place:
        """The database itself."""
        return self.database.place

    async def connect(self) -> AsyncDatabase:
        """Return one more connection, closed at the end of the test."""
        database = AsyncDatabase(self.way)
        await database.open()
        self._databases.append(database)
        return database

    async def other(self, **options: Any) -> tuple[AsyncDatabase, AsyncSQLGuard]:
        """Return one more connection, and a guard on it."""
        database = await self.connect()
        return database, AsyncSQLGuard(database.connection, **options)

    def fence(self, token: int, mode: Mode = Mode.EXCLUSIVE, domain: str = DOMAIN) -> Fence:
        return Fence(token, domain, mode)

    async def add(self, database: AsyncDatabase | None = None) -> None:
        """Add one to the row, in whatever transaction there is."""
        await (database or self.database).run(
            f"UPDATE work SET value = value + 1 WHERE name = '{self.resource}'"
        )

    async def work(self, token: int, mode: Mode = Mode.EXCLUSIVE, domain: str = DOMAIN) -> None:
        """Add one to the row, with this token."""
        async with self.guard.transaction(self.resource, Fence(token, domain, mode)):
            await self.add()

    def value(self) -> int:
        """Return what the row says, as it was committed."""
        return self.place.value(self.resource)

    def floors(self) -> list[tuple[Any, ...]]:
        """Return what the guard remembers, as it was committed."""
        return self.place.floors(self.resource)

    async def until_blocked(self) -> None:
        """Return when a statement waits for another transaction, where that can be seen."""
        end = time.monotonic() + PATIENCE
        while not self.place.blocked():
            assert time.monotonic() < end, "waited in vain"
            await asleep(0.005)

    async def begin(self) -> None:
        """Begin a transaction as a user does, with a statement that reads."""
        if self.database.autocommit:
            await self.database.run("BEGIN")
        await self.database.run("SELECT value FROM work")
