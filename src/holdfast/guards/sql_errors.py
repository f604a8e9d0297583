"""Errors of drivers that a guard understands by their codes, and what it says about misuse."""

from __future__ import annotations

from typing import Any

MISSING = {"42P01", 1146, "no such table"}
# The database chose this transaction to give way.
YIELD = {"40001", "40P01", 1213}
# Another has just made the same table.
CLASH = {"23505", "42P07", 1050}
WAITED = {"55P03", 1205, "SQLITE_BUSY"}

# Why a guard does not begin, or does not commit.
OPEN = (
    "{} cannot be guarded now: the connection has a transaction open already, which may have read "
    "or written before the guard. Drivers begin one with the first statement, a SELECT too: commit "
    "or roll back, then let the guard begin. In a transaction of your own, call guard.check(...) "
    "before anything else."
)
BROKEN = (
    "{} cannot be guarded now: the transaction that is open on the connection has failed before. "
    "Roll it back first."
)
NESTED = (
    "{} cannot be guarded now: a transaction of this guard is open already. Guard several "
    "resources at once, with guard.transaction({{resource: lease, ...}})."
)
ALONE = (
    "{} was checked outside of a transaction, which protects nothing that follows. Begin a "
    "transaction first, or use guard.transaction(...)."
)
APART = (
    "There is no transaction for {} to join. Begin one first, or leave join out: then it has its "
    "own."
)
AUTOCOMMIT = (
    "The connection commits every statement by itself, and its driver does not let the guard begin "
    "a transaction: nothing was written. Use another isolation level than AUTOCOMMIT."
)
UNSAID = (
    "The database did not say whether it has recorded the token, nor why not, so nothing was "
    "written. If it always is so, the driver does not report lastrowid: use another one."
)
FAILED = (
    "The transaction on {} was rolled back and nothing was written: a statement in it had failed. "
    "Let errors of statements leave the with block."
)
ENDED = (
    "The transaction on {} ended before the with block did, by a commit or rollback inside it, or "
    "because the database gave it up: what was done after that was not guarded."
)


def codes(error: BaseException) -> set[Any]:
    """Return what an error of a driver is known by; SQLAlchemy's wraps one."""
    own = getattr(error, "orig", None) or error
    found: set[Any] = {getattr(own, name, None) for name in ("sqlstate", "pgcode", "errno")}
    first = own.args[0] if getattr(own, "args", ()) else None
    if isinstance(first, dict):  # pg8000
        found.add(first.get("C"))
    elif isinstance(first, int):
        found.add(first)
    elif isinstance(first, str) and first.startswith("no such table"):  # SQLite
        found.add("no such table")
    # SQLite's extended codes begin with the plain ones: SQLITE_BUSY_SNAPSHOT.
    found.add("_".join(str(getattr(own, "sqlite_errorname", "")).split("_")[:2]))
    return found


def refusal(name: str, why: str) -> RuntimeError:
    """Return the error about a transaction that a guard cannot begin, or cannot commit."""
    return RuntimeError(why.format(repr(name)))


def missing_tables(prefix: str) -> str:
    """Say what to do about tables that are not there."""
    return (
        f"The guard's tables {prefix}fence and {prefix}once are not there, and nothing was "
        "written: call guard.create() once, outside of a transaction, or put what "
        "sql_schema(dialect) returns into a migration."
    )
