"""A guard's way to the database: through a driver's own connection, or through SQLAlchemy.

Rule 1: a transaction ends as it began: by a statement if by one, else by the connection itself.
Rule 2: one that must not be committed never stays open: if it cannot be rolled back, the
        connection is closed, and the database does it.
"""

from __future__ import annotations

import logging
from typing import Any

from ...guards.sql_alchemy import as_text, dialect_of, driver_state, is_session, resolve
from ...guards.sql_colours import acheck_connection, aclose_connection, aopen_cursor
from ...guards.sql_dialects import find_dialect
from ...guards.sql_drivers import State, find_driver, origin
from ...guards.sql_statements import NAMED, Statement

logger = logging.getLogger("holdfast")


class AsyncLink:
    """What a guard asks of a database."""

    mark: str

    def __init__(self, connection: Any, dialect: str) -> None:
        self._given = connection
        self.dialect = find_dialect(dialect)
        self._by_hand = False  # the transaction was begun by a statement of ours

    async def state(self) -> State:
        """Return what the driver says about its transaction."""
        raise NotImplementedError

    async def busy(self) -> State:
        """Return the same, for a guard that wants to begin one: is there work in it already?"""
        return await self.state()

    async def begin(self) -> None:
        """Begin a transaction, as far as the driver does not do it by itself."""
        state = await self.state()
        if self.dialect.name == "sqlite":
            needed = state.open is False
        else:
            needed = state.autocommit is not False
        self._by_hand = needed and state.autocommit is not False
        if needed:
            await self.run(Statement(self.dialect.begin))

    async def begin_implicitly(self, state: State) -> bool:
        """Begin as the driver would with the next write; False if it would not."""
        if self.dialect.name != "sqlite":
            return state.autocommit is False
        if state.autocommit:
            return False
        # A savepoint outside of a transaction would be one by itself, and its release a commit.
        await self.run(Statement(self.dialect.begin))
        return True

    async def run(self, statement: Statement) -> None:
        """Execute a statement."""
        raise NotImplementedError

    async def rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Return what a statement finds."""
        raise NotImplementedError

    async def passed(self, statement: Statement) -> tuple[tuple[Any, ...] | None, int]:
        """Execute what judges; return a row if it has passed, and how many rows it concerns."""
        raise NotImplementedError

    async def commit(self) -> None:
        """Commit the transaction."""
        if self._by_hand:
            await self.run(Statement("COMMIT"))
            self._by_hand = False
        else:
            await self._given.commit()

    async def commit_if_open(self) -> None:
        """Commit what the driver has begun by itself, if it has."""
        if (await self.busy()).open is not False:
            await self.commit()

    async def undo(self) -> None:
        """Roll back whatever may be open; raise nothing but what interrupts it."""
        try:
            await self._roll_back()
        except BaseException as error:
            self._by_hand = False
            try:
                await self._give_up()
            except Exception as further:
                logger.debug("A connection could not be closed: %r", further)
            if not isinstance(error, Exception):
                raise
            logger.debug("A rollback failed: %r", error)

    async def savepoint(self, number: int) -> Any:
        """Return what `release` and `go_back` take."""
        name = f"holdfast_{number}"
        await self.run(Statement(f"SAVEPOINT {name}"))
        return name

    async def release(self, savepoint: Any) -> None:
        """Keep what was done since."""
        await self.run(Statement(f"RELEASE SAVEPOINT {savepoint}"))

    async def go_back(self, savepoint: Any) -> None:
        """Undo what was done since."""
        await self.run(Statement(f"ROLLBACK TO SAVEPOINT {savepoint}"))

    # --- Inside. ---

    async def _roll_back(self) -> None:
        if self._by_hand:
            await self.run(Statement("ROLLBACK"))
            self._by_hand = False
        else:
            await self._given.rollback()

    async def _give_up(self) -> None:
        """Close the connection, if a transaction is open that cannot be rolled back."""
        raise NotImplementedError


class AsyncDriverLink(AsyncLink):
    """Through a connection of a driver."""

    def __init__(self, connection: Any, dialect: str | None) -> None:
        self._driver = find_driver(connection, dialect)
        super().__init__(connection, self._driver.dialect)
        self.mark = self._driver.mark

    async def state(self) -> State:
        """Return what the driver says about its transaction."""
        return self._driver.state(self._given)

    async def run(self, statement: Statement) -> None:
        """Execute a statement."""
        async with aopen_cursor(self._given) as cursor:
            await _execute(cursor, statement)

    async def rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Return what a statement finds."""
        async with aopen_cursor(self._given) as cursor:
            self._driver.plain(cursor)
            await _execute(cursor, statement)
            return [_values(row) for row in await cursor.fetchall()]

    async def passed(self, statement: Statement) -> tuple[tuple[Any, ...] | None, int]:
        """Execute what judges; return a row if it has passed, and how many rows it concerns."""
        if self.dialect.returning:
            found = await self.rows(statement)
            return (found[0] if found else None), len(found)
        async with aopen_cursor(self._given) as cursor:
            await _execute(cursor, statement)
            return ((1,) if cursor.lastrowid == 1 else None), cursor.rowcount

    async def _give_up(self) -> None:
        if self._driver.state(self._given).open is not False:
            await aclose_connection(self._given)


class AsyncAlchemyLink(AsyncLink):
    """Through a connection or a session of SQLAlchemy."""

    mark = NAMED

    def __init__(self, connection: Any, dialect: str | None) -> None:
        super().__init__(connection, dialect or dialect_of(connection))
        self._is_session = is_session(connection)

    async def state(self) -> State:
        """Return what the driver says about its transaction."""
        return driver_state(await self._connection())

    async def busy(self) -> State:
        """Return the same; SQLAlchemy begins one before the driver does, which counts too."""
        if not self._given.in_transaction():
            return State(False)
        return (await self.state())._replace(open=True)

    async def begin(self) -> None:
        """Begin a transaction."""
        await self._given.begin()
        await super().begin()

    async def run(self, statement: Statement) -> None:
        """Execute a statement."""
        await self._execute(statement)

    async def rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Return what a statement finds."""
        return [tuple(row) for row in (await self._execute(statement)).fetchall()]

    async def passed(self, statement: Statement) -> tuple[tuple[Any, ...] | None, int]:
        """Execute what judges; return a row if it has passed, and how many rows it concerns."""
        result = await self._execute(statement)
        if self.dialect.returning:
            found = [tuple(row) for row in result.fetchall()]
            return (found[0] if found else None), len(found)
        return ((1,) if result.lastrowid == 1 else None), result.rowcount

    async def commit(self) -> None:
        """Commit the transaction, and with it SQLAlchemy's own idea of one."""
        if self._by_hand:
            if self._is_session:
                await self._given.flush()
            await super().commit()
        await self._given.commit()

    async def savepoint(self, number: int) -> Any:
        """Return what `release` and `go_back` take: a session has its own state to restore."""
        return await self._given.begin_nested()

    async def release(self, savepoint: Any) -> None:
        """Keep what was done since."""
        await savepoint.commit()

    async def go_back(self, savepoint: Any) -> None:
        """Undo what was done since."""
        await savepoint.rollback()

    async def _execute(self, statement: Statement) -> Any:
        connection = await self._connection()
        return await connection.execute(as_text(statement), statement.named())

    async def _connection(self) -> Any:
        return await self._given.connection() if self._is_session else self._given

    async def _roll_back(self) -> None:
        if self._by_hand:
            await super()._roll_back()
        await self._given.rollback()

    async def _give_up(self) -> None:
        try:
            if (await self.state()).open is not False:
                await self._given.invalidate()
        finally:
            await self._given.rollback()


def make_link(connection: Any, dialect: str | None) -> AsyncLink:
    """Return the way to a database that goes through this connection."""
    alchemy = origin(connection) == "sqlalchemy"
    if alchemy:
        connection = resolve(connection)
    acheck_connection(connection)
    if alchemy:
        return AsyncAlchemyLink(connection, dialect)
    return AsyncDriverLink(connection, dialect)


async def _execute(cursor: Any, statement: Statement) -> None:
    # Without values some drivers must not be given any: a % would be read as a mark.
    if statement.values:
        await cursor.execute(statement.text, statement.values)
    else:
        await cursor.execute(statement.text)


def _values(row: Any) -> tuple[Any, ...]:
    """Return a row as a tuple, also of a cursor that makes dictionaries."""
    return tuple(row.values() if hasattr(row, "values") and hasattr(row, "keys") else row)
