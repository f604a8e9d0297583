"""What drivers of the two colours do differently, in pairs: cursors, closing, and who is who."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing
from inspect import isawaitable
from typing import Any


def aopen_cursor(connection: Any) -> AbstractAsyncContextManager[Any]:
    """Return a cursor to use in an `async with`."""
    made: AbstractAsyncContextManager[Any] = connection.cursor()
    return made


def open_cursor(connection: Any) -> AbstractContextManager[Any]:
    """Return a cursor to use in a `with`: not all have one of their own."""
    return closing(connection.cursor())


async def aclose_connection(connection: Any) -> None:
    """Close a connection."""
    closed = connection.close()
    if isawaitable(closed):
        await closed


def close_connection(connection: Any) -> None:
    """Close a connection."""
    connection.close()


def acheck_connection(connection: Any) -> None:
    """Refuse what cannot be awaited."""
    kind = type(connection)
    if hasattr(kind, "__enter__") and not hasattr(kind, "__aenter__"):
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__} blocks: use SQLGuard of holdfast.guards for "
            "it, or an awaitable connection here."
        )


def check_connection(connection: Any) -> None:
    """Refuse what must be awaited."""
    kind = type(connection)
    if hasattr(kind, "__aenter__") and not hasattr(kind, "__enter__"):
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__} must be awaited: use SQLGuard of "
            "holdfast.aio.guards for it, or a blocking connection here."
        )
