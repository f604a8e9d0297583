"""What a guard must know of a driver: its dialect, its marks, and what it says of a transaction.

No driver is imported: connections are the user's, and are known by the module they come from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .sql_dialects import find_dialect

_IN_TRANSACTION, _AUTOCOMMIT = 1, 2  # flags of a MySQL server's status
_IDLE, _FAILED, _BROKEN = 0, 3, 4  # libpq's transaction status
_LEGACY = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL


class State(NamedTuple):
    """What a driver says about its connection, without asking the server; None: it does not say."""

    open: bool | None  # a transaction has begun
    failed: bool | None = False  # and can only be rolled back
    autocommit: bool | None = None  # nothing begins by itself


class Driver(NamedTuple):
    """How to talk to a driver."""

    dialect: str
    mark: str
    state: Callable[[Any], State]
    plain: Callable[[Any], None] = lambda cursor: None  # make a cursor return tuples


def _sqlite(connection: Any) -> State:
    control = getattr(connection, "autocommit", _LEGACY)  # since Python 3.12
    if control is False:
        return State(None, autocommit=False)  # a transaction is always open, used or not
    implicit = control == _LEGACY and connection.isolation_level is not None
    return State(connection.in_transaction, autocommit=not implicit)


def _aiosqlite(connection: Any) -> State:
    # Which of the two ways Python commits only the thread of the connection may ask.
    return State(connection.in_transaction, autocommit=connection.isolation_level is None or None)


def _plain_sqlite(cursor: Any) -> None:
    cursor.row_factory = None


def _libpq(connection: Any) -> State:
    status = connection.info.transaction_status
    return State(status not in (_IDLE, _BROKEN), status == _FAILED, connection.autocommit)


def _plain_psycopg(cursor: Any) -> None:
    from psycopg.rows import tuple_row

    cursor.row_factory = tuple_row


def _pg8000(connection: Any) -> State:
    status = connection._transaction_status
    return State(status not in (None, b"I"), status == b"E", connection.autocommit)


def _asyncpg(connection: Any) -> State:
    # Only below SQLAlchemy, which begins transactions by itself.
    return State(connection.is_in_transaction(), None, False)


def _pymysql(connection: Any) -> State:
    # What a lost connection said last counts no more.
    alive = getattr(connection, "open", True) and not getattr(connection, "closed", False)
    flags = connection.server_status
    autocommit = bool(flags & _AUTOCOMMIT)
    # It overlooks the flags that come after rows, and forgets the result when it commits: with
    # rows in hand, a SELECT has begun a transaction that it does not know of.
    result = getattr(connection, "_result", None)
    read = not autocommit and result is not None and result.server_status is None
    return State(bool(alive and (read or flags & _IN_TRANSACTION)), False, autocommit)


def _asyncmy(connection: Any) -> State:
    return State(connection.get_transaction_status(), False, connection.get_autocommit())


def _mysqlclient(connection: Any) -> State:
    return State(None, False, connection.get_autocommit())


def _mysql_connector(connection: Any) -> State:
    return State(connection.in_transaction)


def _mariadb(connection: Any) -> State:
    return State(bool(connection.server_status & _IN_TRANSACTION), False, connection.autocommit)


def _unknown(connection: Any) -> State:
    return State(None, None)


DRIVERS = {
    "sqlite3": Driver("sqlite", "?", _sqlite, _plain_sqlite),
    "aiosqlite": Driver("sqlite", "?", _aiosqlite, _plain_sqlite),
    "psycopg": Driver("postgresql", "%s", _libpq, _plain_psycopg),
    "psycopg2": Driver("postgresql", "%s", _libpq),
    "pg8000": Driver("postgresql", "%s", _pg8000),
    "asyncpg": Driver("postgresql", "", _asyncpg),
    "pymysql": Driver("mysql", "%s", _pymysql),
    "aiomysql": Driver("mysql", "%s", _pymysql),
    "asyncmy": Driver("mysql", "%s", _asyncmy),
    "MySQLdb": Driver("mysql", "%s", _mysqlclient),
    "mysql": Driver("mysql", "%s", _mysql_connector),
    "mariadb": Driver("mysql", "?", _mariadb),
}


def origin(connection: Any) -> str:
    """Return the package that a connection comes from, also if its class is derived."""
    roots = [base.__module__.partition(".")[0] for base in type(connection).__mro__]
    return next((root for root in roots if root in DRIVERS or root == "sqlalchemy"), "")


def find_driver(connection: Any, dialect: str | None) -> Driver:
    """Return what is known of a connection's driver; `dialect` helps where that is nothing."""
    driver = DRIVERS.get(origin(connection))
    if dialect is not None:
        find_dialect(dialect)
        known = driver or Driver(dialect, "?" if dialect == "sqlite" else "%s", _unknown)
        return known._replace(dialect=dialect)
    if driver is None or not driver.mark:
        kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
        raise TypeError(
            f"A SQL guard takes a connection of a DB-API driver, or a SQLAlchemy connection or "
            f"session, and does not know {kind}: give the driver's own connection, or dialect=."
        )
    return driver
