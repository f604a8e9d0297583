"""The database of sqlite://: one row per name, one statement for a claim nobody disputes.

Rule 1: a row is idle (no owner, no body), held by one and wanted by nobody (owner), or anything
        else (body, as JSON). Only the middle kind is read and written by single statements.
Rule 2: `floor` is the last token of the name; an idle row is forgotten a day after it (S19).
Rule 3: instants are those of the host's boot clock, together with the boot they belong to.
Rule 4: everything else runs inside BEGIN IMMEDIATE, on records of the lock table.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, MutableMapping
from typing import Any, Protocol

from .errors import EngineUnavailable
from .lock_table import Channel, Holding, Record, Waiting
from .model import Claim, Family, Mode, Reason, Terms
from .rules import FLOOR_LIFETIME

FORMAT = 1  # PRAGMA user_version
TERMS = len(Terms._fields)

SCHEMA = """
CREATE TABLE IF NOT EXISTS record (
    key TEXT PRIMARY KEY, floor INTEGER NOT NULL,
    owner TEXT, since REAL, expires REAL, terms TEXT, body TEXT
) WITHOUT ROWID
"""

CLAIM = """
INSERT INTO record (key, floor, owner, since, expires, terms) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    floor = max(record.floor + 1, excluded.floor), owner = excluded.owner,
    since = excluded.since, expires = excluded.expires, terms = excluded.terms
WHERE record.owner IS NULL AND record.body IS NULL RETURNING floor
"""
RELEASE = "UPDATE record SET owner = NULL WHERE key = ? AND owner = ? AND expires > ?"
RENEW = """
UPDATE record SET expires = ? WHERE key = ? AND owner = ? AND terms = ? AND expires > ?
"""
LOAD = "SELECT floor, owner, since, expires, terms, body FROM record WHERE key = ?"
STORE = """
INSERT INTO record (key, floor, owner, since, expires, terms, body) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET floor = excluded.floor, owner = excluded.owner,
    since = excluded.since, expires = excluded.expires, terms = excluded.terms, body = excluded.body
"""
LIST = """
SELECT key FROM record WHERE key >= ? AND key < ? AND (owner IS NOT NULL OR body IS NOT NULL)
ORDER BY key
"""
FORGET = """
DELETE FROM record WHERE key IN (
    SELECT key FROM record WHERE owner IS NULL AND body IS NULL AND floor < ? LIMIT 1000
)
"""
LAST = "\U0010ffff"


class Office(Protocol):
    """What the engine does for a transaction: reach other clients, and judge their claims."""

    def peer(self, boot: str, address: str) -> Peer:
        """Return who stands behind an address."""

    def expires(self, peer: Peer, owner: str, stored: float, most: float) -> float:
        """Return when a claim that is stored ends on our clock: at most `most` from now."""

    def expect(self, claim: Claim) -> None:
        """Hear that a claim of ours is queued."""

    def push_grant(self, peer: Peer, claim: Claim, token: int, at: float) -> bool:
        """Tell a waiter, after the commit, that it holds now; False if it is surely dead."""

    def push_loss(self, peer: Peer, owner: str, reason: Reason) -> None:
        """Tell a holder, after the commit, that it was removed."""


class Peer:
    """Who made a claim: a client of this host, by boot and socket address."""

    __slots__ = ("address", "boot", "office", "stored_expires")

    def __init__(self, office: Office, boot: str, address: str) -> None:
        self.office = office
        self.boot = boot
        self.address = address
        self.stored_expires = 0.0  # as its own boot counts, kept for writing it back

    def queued(self, claim: Claim) -> None:
        """See Channel."""
        self.office.expect(claim)

    def granted(self, claim: Claim, token: int, at: float) -> bool:
        """See Channel."""
        return self.office.push_grant(self, claim, token, at)

    def revoked(self, owner: str, reason: Reason) -> None:
        """See Channel."""
        self.office.push_loss(self, owner, reason)


Row = tuple[int, str | None, float | None, float | None, str | None, str | None]


def terms_text(claim: Claim, peer: Peer) -> str:
    """Return what a row keeps of the claim of its only holder, apart from the owner."""
    return _compact([*_parts(claim), peer.boot, peer.address])


def _parts(claim: Claim) -> list[Any]:
    return [*claim[:TERMS], claim.revision]


def _claim_of(parts: list[Any], owner: str) -> Claim:
    key, name, family, mode, path, limit, ttl, label, value, revision = parts
    kind, how = Family(family), Mode(mode)
    return Claim(key, name, kind, how, tuple(path), limit, ttl, label, value, owner, True, revision)


class RowRecords(MutableMapping[str, Record]):
    """The records of one transaction: loaded when asked for, written back by `flush`."""

    def __init__(self, office: Office, boot: str) -> None:
        self._office = office
        self._boot = boot
        self._rows: dict[str, Row | None] = {}
        self._loaded: dict[str, Record | None] = {}
        self._connection: sqlite3.Connection

    def begin(self, connection: sqlite3.Connection) -> None:
        """Forget what the last transaction saw."""
        self._connection = connection
        self._rows.clear()
        self._loaded.clear()

    def floor(self, key: str) -> int:
        """Return the last token of a name."""
        self._load(key)
        row = self._rows[key]
        return row[0] if row else 0

    def _load(self, key: str) -> Record | None:
        if key not in self._loaded:
            row: Row | None = self._connection.execute(LOAD, (key,)).fetchone()
            self._rows[key] = row
            self._loaded[key] = self._parse(row) if row else None
        return self._loaded[key]

    def _parse(self, row: Row) -> Record | None:
        floor, owner, since, expires, terms, body = row
        if owner is not None and terms is not None:
            *parts, boot, address = json.loads(terms)
            return self._record([[owner, parts, floor, since, expires, 0, boot, address]], [])
        return None if body is None else self._record(*json.loads(body))

    def _record(self, holders: list[Any], waiters: list[Any]) -> Record:
        record: Record | None = None
        for owner, parts, token, since, stored, lingering, boot, address in holders:
            claim = _claim_of(parts, owner)
            record = record or Record(claim)
            peer = self._office.peer(boot, address)
            peer.stored_expires = stored
            holding = Holding(claim, token, since, peer)
            most = stored - since if lingering else claim.ttl
            holding.expires = self._office.expires(peer, owner, stored, most)
            holding.lingering = bool(lingering)
            record.holders[owner] = holding
            record.soonest = min(record.soonest, holding.expires)
        for owner, parts, since, boot, address in waiters:
            claim = _claim_of(parts, owner)
            record = record or Record(claim)
            record.waiters[owner] = Waiting(claim, since, self._office.peer(boot, address))
        assert record is not None
        return record

    def flush(self) -> None:
        """Write back every record that was changed."""
        for key, record in self._loaded.items():
            floor = self.floor(key)
            if record is None or record.empty:
                row: Row = (floor, None, None, None, None, None)
            else:
                floor = max([floor, *(one.token for one in record.holders.values())])
                row = (floor, *self._columns(record, floor))
            if floor and row != self._rows[key]:
                self._connection.execute(STORE, (key, *row))

    def _columns(
        self, record: Record, floor: int
    ) -> tuple[str | None, float | None, float | None, str | None, str | None]:
        holders = [self._holder(owner, one) for owner, one in record.holders.items()]
        if len(holders) == 1 and not record.waiters:
            owner, parts, token, since, expires, lingering, *place = holders[0]
            if token == floor and not lingering:
                return owner, since, expires, _compact([*parts, *place]), None
        waiters = [
            [owner, _parts(one.claim), one.since, *_place(one.channel)]
            for owner, one in record.waiters.items()
        ]
        return None, None, None, None, _compact([holders, waiters])

    def _holder(self, owner: str, one: Holding) -> list[Any]:
        boot, address = _place(one.channel)
        expires = one.expires
        if boot != self._boot:  # counted by another clock than ours: its own word stands
            assert isinstance(one.channel, Peer)
            expires = one.channel.stored_expires
        parts = _parts(one.claim)
        return [owner, parts, one.token, one.since, expires, int(one.lingering), boot, address]

    def keys_with(self, prefix: str) -> list[str]:
        """Return the keys in use that start with `prefix`."""
        return [row[0] for row in self._connection.execute(LIST, (prefix, prefix + LAST))]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a record, None if nobody holds or waits."""
        return self._load(key)

    def __getitem__(self, key: str) -> Record:
        record = self._load(key)
        if record is None:
            raise KeyError(key)
        return record

    def __setitem__(self, key: str, record: Record) -> None:
        self._load(key)
        self._loaded[key] = record

    def __delitem__(self, key: str) -> None:
        self._load(key)
        self._loaded[key] = None

    def __iter__(self) -> Iterator[str]:
        return iter([key for key, record in self._loaded.items() if record is not None])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _place(channel: Channel) -> tuple[str, str]:
    assert isinstance(channel, Peer)
    return channel.boot, channel.address


def _compact(value: list[Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def open_database(path: str, create: bool) -> sqlite3.Connection:
    """Open the file, made with mode 0600 if need be, and see to its schema."""
    if create:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    elif not os.path.exists(path):
        raise FileNotFoundError(2, "there is no such file, and create=False", path)
    connection = sqlite3.connect(
        path, timeout=0.0, isolation_level=None, check_same_thread=False, cached_statements=32
    )
    try:
        connection.execute("PRAGMA busy_timeout = 2000")
        # Of a new file only: a claim writes one small row, and the log takes whole pages.
        connection.execute("PRAGMA page_size = 1024")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # Each checkpoint waits for the disk; a log of about 4 MB makes them a quarter as many.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found == 0 and create:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(SCHEMA)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
        elif found != FORMAT:
            raise EngineUnavailable(
                f"The lock file {path} has format {found}, and this holdfast knows format "
                f"{FORMAT}: use the same version everywhere, or another file.",
                engine=path,
            )
        connection.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def forget_idle(connection: sqlite3.Connection, now_micros: int) -> None:
    """Drop idle rows whose last token is older than a day."""
    connection.execute(FORGET, (now_micros - int(FLOOR_LIFETIME * 1e6),))


_REMEDIES = (
    ("not a database", "it is some other file, or damaged; move it away, a new one is made"),
    ("malformed", "it is damaged; move it away, a new one is made"),
    ("full", "free some space on that disk"),
    ("readonly", "it is not writable here; check its owner and mode"),
    ("read-only", "it is not writable here; check its owner and mode"),
    ("unable to open", "check that its folder exists and is writable"),
    ("Permission denied", "check the owner and mode of the file and its folder"),
    ("no such file", "create it, or allow create=True"),
    ("I/O", "check the disk"),
)


def remedy(error: Exception) -> str:
    """Return what to do about an error of the file."""
    text = str(error)
    return next((cure for sign, cure in _REMEDIES if sign in text), "see the cause")
