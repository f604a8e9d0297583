"""(Generated from _async/transaction_lock.py by tools/unasync.py: do not edit.) The lock for the length of the caller's own transaction, on PostgreSQL: no lease, no renewal.

Rule 1: it ends with the transaction, by commit or rollback, and with the connection. Nothing else
        ends it: it has no TTL, and nobody can break it but by ending the transaction.
Rule 2: it excludes leases of the same name, and they exclude it. Who came before it comes first.
Rule 3: what could not be had leaves nothing behind in the transaction: a savepoint is rolled back.
"""

from __future__ import annotations

import time
from typing import Any

from psycopg import Connection
from psycopg.errors import Error
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from .._concurrency import sleep
from ..errors import EngineUnavailable, NotAcquired
from ..model import Seconds, check_wait
from ..names import encode, record_key
from ..postgres_link import MISSING, from_driver
from ..postgres_record import TransactionLock, check_schema, quoted
from ..rules import backoff

FIRST, MOST = 0.01, 0.1  # seconds between two looks


def transaction_lock(
    connection: Connection[Any],
    name: str,
    *,
    timeout: Seconds | None = None,
    namespace: str = "holdfast",
    schema: str = "holdfast",
    domain: str | None = None,
) -> TransactionLock:
    """Take the exclusive lock `name` until the open transaction of `connection` ends.

    Waits for ever, or `timeout` seconds, then raises NotAcquired, and the transaction is as it was
    before. The tables must be there: any client makes them, or `holdfast doctor --fix`.
    """
    wait = check_wait(timeout)
    where = _check(connection)
    key = record_key(namespace, encode(name))
    take = f"SELECT {quoted(check_schema(schema))}.take_in_transaction(%s)"
    end = None if wait is None else time.monotonic() + wait
    connection.execute("SAVEPOINT holdfast_take")
    attempt = 0
    try:
        while True:
            with connection.cursor(row_factory=tuple_row) as cursor:
                cursor.execute(take.encode(), (key,))
                row = cursor.fetchone()
            if row is not None and row[0] is not None:
                connection.execute("RELEASE SAVEPOINT holdfast_take")
                return TransactionLock(name, row[0], domain or f"postgresql:{namespace}")
            if end is not None and time.monotonic() >= end:
                raise NotAcquired(
                    f"{name!r} on {where} was not acquired within {wait:g} s: another lease or "
                    "transaction has it.",
                    name=name,
                    engine=where,
                )
            sleep(backoff(attempt, 1.0, FIRST, MOST))
            attempt += 1
    except BaseException as error:
        _undo(connection)
        if isinstance(error, Error) and error.sqlstate in MISSING:
            raise EngineUnavailable(
                f"{where} lacks the tables of holdfast in schema {schema!r}; make them with "
                "holdfast doctor --fix.",
                name=name,
                engine=where,
            ) from error
        raise


def _check(connection: Connection[Any]) -> str:
    """Return where a connection leads to, or raise why it cannot keep a lock."""
    if not isinstance(connection, Connection):
        raise TypeError(
            f"transaction_lock takes a {Connection.__name__} of psycopg, not "
            f"{type(connection).__module__}.{type(connection).__qualname__}."
        )
    where = from_driver(connection).location
    status = connection.info.transaction_status
    if status == TransactionStatus.IDLE and connection.autocommit:
        raise ValueError(
            f"The connection to {where} has no open transaction, and with autocommit the lock "
            "would end at once: take it inside `with connection.transaction():`."
        )
    if status == TransactionStatus.INERROR:
        raise ValueError(
            f"The transaction of the connection to {where} has failed: roll it back first."
        )
    return where


def _undo(connection: Connection[Any]) -> None:
    """Roll back to where we began, if the connection still can."""
    try:
        connection.execute("ROLLBACK TO SAVEPOINT holdfast_take")
        connection.execute("RELEASE SAVEPOINT holdfast_take")
    except Error:
        pass  # then the whole transaction is over
