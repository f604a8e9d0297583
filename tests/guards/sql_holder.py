"""A process that stays inside a guarded transaction: sql_holder.py KIND PATH|PORT RESOURCE."""

from __future__ import annotations

import sqlite3
import sys
import time
from typing import Any

import psycopg
import pymysql  # type: ignore[import-untyped]

from holdfast.guards import Fence, SQLGuard


def connect(kind: str, address: str) -> Any:
    """Return a connection to the database."""
    if kind == "sqlite":
        return sqlite3.connect(address)
    if kind == "postgresql":
        return psycopg.connect(host="127.0.0.1", port=address, user="postgres")
    return pymysql.connect(host="127.0.0.1", port=int(address), user="root", database="test")


def main(kind: str, address: str, resource: str) -> None:
    """Write, say so, and stay."""
    connection = connect(kind, address)
    with SQLGuard(connection).transaction(resource, Fence(9, "test:locks")):
        connection.cursor().execute(f"UPDATE work SET value = 9 WHERE name = '{resource}'")
        sys.stdout.write("inside\n")
        sys.stdout.flush()
        time.sleep(600)


main(*sys.argv[1:])
