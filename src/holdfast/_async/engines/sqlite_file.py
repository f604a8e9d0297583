"""The lock file as one client sees it: opened when needed, opened anew when replaced, shared.

Rule 1: nothing sleeps inside a transaction; while another process writes, we pause outside and try
        again, so a cancelled verb has happened as a whole or not at all.
Rule 2: a connection is closed only by the process that opened it, and under no statement's feet.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from ..._concurrency import AsyncThreadLock, asleep
from ...clocks import Clock
from ...errors import EngineUnavailable, LockError
from ...filesystems import identity, refuse_shared_filesystem
from ...rules import backoff
from ...sqlite_store import open_database, remedy

T = TypeVar("T")

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
CHECK_EVERY = 0.1  # seconds; a look at the path costs a third of a statement
LEAST = 0.1  # seconds of patience with others who write, however little the caller has

_inherited: list[sqlite3.Connection] = []  # a forked child must never close them: they are kept


class AsyncLockFile:
    """One connection to the file, used by one thread at a time."""

    def __init__(
        self,
        path: str,
        *,
        create: bool,
        any_filesystem: bool,
        clock: Clock,
        on_open: Callable[[], None],
    ) -> None:
        self.mutex = AsyncThreadLock()
        self._path = path
        self._create = create
        self._any_filesystem = any_filesystem
        self._clock = clock
        self._on_open = on_open
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._check_at = 0.0  # when to look whether another file was put in its place
        self._closed = False

    async def run(self, action: Callable[[sqlite3.Connection], T], timeout: float) -> T:
        """Run a short action; while another process writes, pause and try again."""
        started = self._clock()
        give_up = started + max(timeout, LEAST)
        attempt = 0
        while True:
            try:
                with self.mutex:
                    return action(self.database(started))
            except LockError:
                raise
            except (sqlite3.Error, OSError) as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in BUSY:
                    text = f"cannot be used ({error}): {remedy(error)}"
                    raise self._unavailable(text) from error
                if self._clock() >= give_up:
                    text = f"was busy for {timeout:.3g} s: another process keeps writing; try again"
                    raise self._unavailable(text) from error
            await asleep(backoff(attempt, 0.5, first=0.0002, most=0.005))
            attempt += 1

    def _unavailable(self, text: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"The lock file {self._path} {text}.", engine=f"sqlite://{self._path}"
        )

    def database(self, now: float) -> sqlite3.Connection:
        """Return the open file; open it anew if another one was put in its place."""
        if self._closed:
            raise self._unavailable("was closed")
        if self._connection is not None:
            if now < self._check_at:
                return self._connection
            self._check_at = now + CHECK_EVERY
            if self._identity == identity(self._path):
                return self._connection
            self._connection.close()
            self._connection = None
        if not self._any_filesystem:
            refuse_shared_filesystem(self._path)
        connection = open_database(self._path, self._create)
        self._identity = identity(self._path)
        self._connection = connection
        self._on_open()
        return connection

    def close(self) -> None:
        """Close it for good."""
        with self.mutex:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def abandon(self) -> None:
        """In a forked child: leave the parent's connection alone."""
        if self._connection is not None:
            _inherited.append(self._connection)
