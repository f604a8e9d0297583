"""What is special about SQLAlchemy, for both colours: texts, and the driver below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .sql_drivers import DRIVERS, State, origin
from .sql_statements import Statement

if TYPE_CHECKING:
    from sqlalchemy import TextClause


def as_text(statement: Statement) -> TextClause:
    """Return a statement as SQLAlchemy takes it, whatever marks its driver has."""
    from sqlalchemy import BigInteger, bindparam, text

    numbers = [name for name, value in statement.named().items() if type(value) is int]
    return text(statement.text).bindparams(
        *(bindparam(name, type_=BigInteger()) for name in numbers)
    )


def is_session(given: Any) -> bool:
    """Say whether it is a session, or a registry of sessions, and no connection."""
    return hasattr(type(given), "flush")


def resolve(given: Any) -> Any:
    """Return the session of this thread or task, if a registry of sessions was given."""
    return given() if is_session(given) and callable(given) else given


def dialect_of(given: Any) -> str:
    """Return the name of its dialect, as SQLAlchemy calls it."""
    if is_session(given):
        return str(given.get_bind().dialect.name)
    if not hasattr(type(given), "in_transaction"):
        kind = type(given).__qualname__
        raise TypeError(f"A SQL guard takes a connection or a session of SQLAlchemy, not {kind}.")
    return str(given.dialect.name)


def driver_state(connection: Any) -> State:
    """Return what the driver below a connection says about its transaction."""
    blocking = getattr(connection, "sync_connection", None) or connection
    own = blocking.connection.driver_connection
    driver = DRIVERS.get(origin(own))
    return driver.state(own) if driver else State(None, None, False)
