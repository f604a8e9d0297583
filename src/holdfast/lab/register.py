"""The resource that the locks protect: one counter, kept three times, in an SQLite file.

unguarded   takes every write: shows what a lock alone is worth when its holder was paused
write-only  looks at the token when something is written, and not when it is read: a planted bug
guarded     records the token when the work begins (S23)

Rule 1: all three are judged by the rule of all guards, `fencing.judge`.
Rule 2: each step is one transaction, and leaves a line in `log`: what was found, what was written.
Rule 3: no fault ever touches this file; who is killed in a transaction has done nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from ..clocks import boot_clock
from ..errors import DomainMismatch, StaleToken
from ..fencing import Fence, Floors, judge

UNGUARDED, WRITE_ONLY, GUARDED = "unguarded", "write-only", "guarded"
KINDS = (UNGUARDED, WRITE_ONLY, GUARDED)

SCHEMA = """
CREATE TABLE counter (
    name TEXT, kind TEXT, value INTEGER NOT NULL, domain TEXT, exclusive INTEGER, shared INTEGER,
    PRIMARY KEY (name, kind)
) WITHOUT ROWID;
CREATE TABLE log (
    number INTEGER PRIMARY KEY, at REAL, client TEXT, name TEXT, kind TEXT, token INTEGER,
    based_on INTEGER, found INTEGER, refused TEXT
);
"""
PATIENCE = 60.0  # seconds; who was stopped in a transaction lets all others wait

Values = dict[str, int | None]  # by kind; None = refused


class Entry(NamedTuple):
    """One line of the log: a write that was taken, or anything that was refused."""

    at: float
    client: str
    name: str
    kind: str
    token: int
    based_on: int | None  # None: it was refused when the work began
    found: int
    refused: str  # empty: taken


class Register:
    """One process's way to the counters."""

    def __init__(self, path: Path, client: str) -> None:
        self._client = client
        self.refusal = ""  # the kind of error with which the guard last refused us
        self._file = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        self._file.execute("PRAGMA synchronous = OFF")  # processes die here, not the machine

    @staticmethod
    def create(path: Path) -> None:
        """Make the file."""
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA journal_mode = WAL")
            file.executescript(SCHEMA)

    def begin(self, name: str, fence: Fence) -> Values:
        """Read all three; the guarded one records the token first."""
        with self._transaction():
            found: Values = {}
            for kind in KINDS:
                value, floors = self._load(name, kind)
                found[kind] = value
                if kind == GUARDED and not self._admit(name, kind, floors, fence, None, value):
                    found[kind] = None
            return found

    def write(self, name: str, fence: Fence, read: Values) -> Mapping[str, bool]:
        """Write one more than was read, to each that let us in; return which took it."""
        with self._transaction():
            taken = {}
            for kind, based_on in read.items():
                if based_on is None:
                    taken[kind] = False
                    continue
                value, floors = self._load(name, kind)
                taken[kind] = kind == UNGUARDED or self._admit(
                    name, kind, floors, fence, based_on, value
                )
                if taken[kind]:
                    self._store(name, kind, based_on + 1)
                    self._log(name, kind, fence.token, based_on, value, "")
            return taken

    def value(self, name: str, kind: str) -> int:
        """Return what a counter says now."""
        return self._load(name, kind)[0]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    def _load(self, name: str, kind: str) -> tuple[int, Floors | None]:
        row = self._file.execute(
            "SELECT value, domain, exclusive, shared FROM counter WHERE name = ? AND kind = ?",
            (name, kind),
        ).fetchone()
        if row is None:
            return 0, None
        return row[0], None if row[1] is None else Floors(*row[1:])

    def _admit(
        self,
        name: str,
        kind: str,
        floors: Floors | None,
        fence: Fence,
        based_on: int | None,
        value: int,
    ) -> bool:
        """Judge and record the token; say whether it may in."""
        try:
            new = judge(name, floors, fence)
        except (StaleToken, DomainMismatch) as error:
            if kind == GUARDED:
                self.refusal = type(error).__name__
            self._log(name, kind, fence.token, based_on, value, str(error))
            return False
        self._file.execute(
            "INSERT INTO counter VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "domain = excluded.domain, exclusive = excluded.exclusive, shared = excluded.shared",
            (name, kind, value, *new),
        )
        return True

    def _store(self, name: str, kind: str, value: int) -> None:
        self._file.execute(
            "INSERT INTO counter (name, kind, value) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET value = excluded.value",
            (name, kind, value),
        )

    def _log(
        self, name: str, kind: str, token: int, based_on: int | None, found: int, refused: str
    ) -> None:
        self._file.execute(
            "INSERT INTO log (at, client, name, kind, token, based_on, found, refused) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (boot_clock(), self._client, name, kind, token, based_on, found, refused),
        )


def read_log(path: Path) -> list[Entry]:
    """Return the whole log, in the order in which it happened."""
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute(
            "SELECT at, client, name, kind, token, based_on, found, refused FROM log "
            "ORDER BY number"
        )
        return [Entry(*row) for row in rows]
