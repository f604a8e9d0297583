"""sqlite:/// beside two bare statements, and beside the file locks people use today."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from functools import partial

from .. import connect
from .floor import Row, Step
from .timing import alternate, ratio

PAIRS = 1_000

CREATE = """
CREATE TABLE lock (name TEXT PRIMARY KEY, owner TEXT, token INTEGER, expires REAL) WITHOUT ROWID
"""
TAKE = """
INSERT INTO lock VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET owner = excluded.owner,
    token = max(lock.token + 1, excluded.token), expires = excluded.expires
WHERE lock.owner IS NULL RETURNING token
"""
GIVE = "UPDATE lock SET owner = NULL WHERE name = ? AND owner = ?"


def _bare(folder: str) -> Callable[[], None]:
    """The floor: an upsert that returns a token, and a conditional update."""
    base = sqlite3.connect(os.path.join(folder, "floor.db"), isolation_level=None)
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("PRAGMA synchronous = NORMAL")
    base.execute(CREATE)

    owner = os.urandom(16).hex()

    def run() -> None:
        for _ in range(PAIRS):
            row = ("pair", owner, time.time_ns() // 1000, time.monotonic() + 30)
            assert base.execute(TAKE, row).fetchall()
            assert base.execute(GIVE, ("pair", owner)).rowcount

    return run


def _peers(folder: str) -> dict[str, Callable[[], None]]:
    """File locks that are installed here; they have no token, no TTL and no queue."""
    peers: dict[str, Callable[[], None]] = {}
    try:
        from filelock import FileLock

        file_lock = FileLock(os.path.join(folder, "filelock"))

        def by_filelock() -> None:
            for _ in range(PAIRS):
                file_lock.acquire()
                file_lock.release()

        peers["filelock"] = by_filelock
    except ImportError:
        pass
    try:
        import portalocker

        port_lock = portalocker.Lock(os.path.join(folder, "portalocker"))

        def by_portalocker() -> None:
            for _ in range(PAIRS):
                port_lock.acquire()
                port_lock.release()

        peers["portalocker"] = by_portalocker
    except ImportError:
        pass
    return peers


def pair(rounds: int) -> list[Row]:
    """An uncontended acquire and release."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        peers = _peers(folder)
        with connect(f"sqlite://{folder}/locks.db") as client:
            lock = client.lock("pair", ttl=30)

            def ours() -> None:
                for _ in range(PAIRS):
                    lease = lock.acquire()
                    assert lease is not None
                    lease.release()

            floor, mine, *others = alternate(rounds, PAIRS, _bare(folder), ours, *peers.values())
    rows = [ratio("pair, sync / two bare statements", floor, mine, 1.5)]
    for name, times in zip(peers, others, strict=True):
        rows.append(ratio(f"{name} (no token, no TTL) / two bare statements", floor, times, None))
    for name in ("filelock", "portalocker"):
        if name not in peers:
            rows.append(Row(f"{name}", float("nan"), "", None, "is not installed here"))
    return rows


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    return [partial(pair, 9 if quick else 61)]
