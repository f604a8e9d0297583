"""Connections that a SQL guard is tested with, in both colours under paired names.

A way is a place and how it is reached: "sqlite", "sqlite-autocommit", "sqlite-connection" and
"sqlite-session" (the last two through SQLAlchemy), and likewise for the others.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import aiomysql  # type: ignore[import-untyped]
import aiosqlite
import psycopg
import pymysql  # type: ignore[import-untyped]
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import holdfast.aio.guards
import holdfast.guards

from .sql_places import PATIENCE, Place, SQLitePlace, place

AsyncSQLGuard = holdfast.aio.guards.SQLGuard
SQLGuard = holdfast.guards.SQLGuard

PLACES = ("sqlite", "postgresql", "mariadb")
WAYS = [
    f"{where}{how}" for where in PLACES for how in ("", "-autocommit", "-connection", "-session")
]
FEWER = [way for way in WAYS if not way.endswith("-connection")]
DRIVERS = {
    "sqlite": ("sqlite", "sqlite+aiosqlite"),
    "postgresql": ("postgresql+psycopg", "postgresql+psycopg"),
    "mariadb": ("mysql+pymysql", "mysql+aiomysql"),
}
USERS = {"postgresql": "postgres", "mariadb": "root"}
NAMES = {"postgresql": "postgres", "mariadb": "test"}


def _url(where: Place, driver: str) -> str:
    if isinstance(where, SQLitePlace):
        return f"{driver}:///{where.path}?timeout={PATIENCE:g}"
    user, name = USERS[where.dialect], NAMES[where.dialect]
    return f"{driver}://{user}@127.0.0.1:{where.port}/{name}"


def _server(where: Place) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": where.port, "user": USERS[where.dialect]}


class _Common:
    """What both colours know."""

    connection: Any
    _engine: Any = None

    def __init__(self, way: str) -> None:
        self.way = way
        where, _, self._how = way.partition("-")
        self.place = place(where)
        self.dialect = self.place.dialect

    @property
    def autocommit(self) -> bool:
        """Whether nothing begins by itself."""
        return self._how == "autocommit"

    @property
    def alchemy(self) -> bool:
        """Whether it is reached through SQLAlchemy."""
        return self._how in ("connection", "session")

    @property
    def mark(self) -> str:
        """How a parameter called n is marked."""
        return ":n" if self.alchemy else "?" if self.dialect == "sqlite" else "%s"

    def parameters(self, value: Any) -> Any:
        """Return the one parameter."""
        return {"n": value} if self.alchemy else (value,)


class AsyncDatabase(_Common):
    """An awaitable connection."""

    async def open(self) -> None:
        where = self.place
        if self.alchemy:
            self._engine = create_async_engine(_url(where, DRIVERS[self.dialect][1]))
            if self._how == "session":
                self.connection = AsyncSession(self._engine)
            else:
                self.connection = await self._engine.connect()
        elif isinstance(where, SQLitePlace):
            level: Any = None if self.autocommit else ""
            self.connection = await aiosqlite.connect(
                where.path, timeout=PATIENCE, isolation_level=level
            )
        elif self.dialect == "postgresql":
            self.connection = await psycopg.AsyncConnection.connect(
                _url(where, "postgresql"), autocommit=self.autocommit
            )
        else:
            self.connection = await aiomysql.connect(
                db="test", autocommit=self.autocommit, **_server(where)
            )

    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement, in whatever transaction there is, and return what it finds."""
        if self.alchemy:
            result = await self.connection.execute(sqlalchemy.text(statement))
            return [tuple(row) for row in result.fetchall()] if result.returns_rows else []
        async with self.connection.cursor() as cursor:
            await cursor.execute(statement)
            return [tuple(row) for row in await cursor.fetchall()] if cursor.description else []

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def raw(self) -> Any:
        """Return the driver's own connection."""
        if not self.alchemy:
            return self.connection
        connection = self.connection
        if self._how == "session":
            connection = await connection.connection()
        return (await connection.get_raw_connection()).driver_connection

    async def close(self) -> None:
        closed = self.connection.close()
        if closed is not None:
            await closed
        if self._engine is not None:
            await self._engine.dispose()


class Database(_Common):
    """A blocking connection."""

    def open(self) -> None:
        where = self.place
        if self.alchemy:
            self._engine = sqlalchemy.create_engine(_url(where, DRIVERS[self.dialect][0]))
            if self._how == "session":
                self.connection = Session(self._engine)
            else:
                self.connection = self._engine.connect()
        elif isinstance(where, SQLitePlace):
            level: Any = None if self.autocommit else ""
            self.connection = sqlite3.connect(
                where.path, timeout=PATIENCE, isolation_level=level, check_same_thread=False
            )
        elif self.dialect == "postgresql":
            self.connection = psycopg.connect(_url(where, "postgresql"), autocommit=self.autocommit)
        else:
            self.connection = pymysql.connect(
                database="test", autocommit=self.autocommit, **_server(where)
            )

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement, in whatever transaction there is, and return what it finds."""
        if self.alchemy:
            result = self.connection.execute(sqlalchemy.text(statement))
            return [tuple(row) for row in result.fetchall()] if result.returns_rows else []
        cursor = self.connection.cursor()
        try:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        finally:
            cursor.close()

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def raw(self) -> Any:
        """Return the driver's own connection."""
        if not self.alchemy:
            return self.connection
        connection = self.connection
        if self._how == "session":
            connection = connection.connection()
        return connection.connection.driver_connection

    def close(self) -> None:
        self.connection.close()
        if self._engine is not None:
            self._engine.dispose()
