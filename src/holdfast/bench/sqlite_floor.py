"""sqlite:/// beside two bare statements, and beside the file locks people use today."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from contextlib import ExitStack
from functools import partial

from .. import connect
from .contestant import Place
from .floor import Row, Step
from .handle import Handle, pair_of
from .peers.file_ones import Filelock, Portalocker
from .redis_peers import Peer, repeated
from .timing import alternate, ratio

PAIRS = 1_000
BESIDE = "two bare statements"

CREATE = """
CREATE TABLE IF NOT EXISTS lock (
    name TEXT PRIMARY KEY, owner TEXT, token INTEGER, expires REAL
) WITHOUT ROWID
"""
TAKE = """
INSERT INTO lock VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET owner = excluded.owner,
    token = max(lock.token + 1, excluded.token), expires = excluded.expires
WHERE lock.owner IS NULL RETURNING token
"""
GIVE = "UPDATE lock SET owner = NULL WHERE name = ? AND owner = ?"


def bare_base(stack: ExitStack, folder: str) -> sqlite3.Connection:
    """Return a connection to the floor's own file, closed with the stack."""
    base = sqlite3.connect(
        os.path.join(folder, "floor.db"), isolation_level=None, check_same_thread=False, timeout=30
    )
    stack.callback(base.close)
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("PRAGMA synchronous = NORMAL")
    base.execute(CREATE)
    return base


def bare_lock(stack: ExitStack, folder: str, key: str) -> Handle:
    """The floor: an upsert that returns a token, and a conditional update."""
    execute = bare_base(stack, folder).execute
    owner = os.urandom(16).hex()

    def take() -> None:
        row = (key, owner, time.time_ns() // 1000, time.monotonic() + 30)
        assert execute(TAKE, row).fetchall()

    def give() -> None:
        assert execute(GIVE, (key, owner)).rowcount

    return Handle(take, give)


def pair(rounds: int) -> list[Row]:
    """An uncontended acquire and release."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, ExitStack() as stack:
        place = Place("sqlite", f"sqlite://{folder}/locks.db", (), folder)
        client = stack.enter_context(connect(place.url))
        lock = client.lock("pair", ttl=30)

        def ours() -> None:
            for _ in range(PAIRS):
                lease = lock.acquire()
                assert lease is not None
                lease.release()

        floor = repeated(PAIRS, pair_of(bare_lock(stack, folder, "pair")))
        peers = [Peer.of(kind, place) for kind in (Filelock, Portalocker)]
        for peer in peers:
            stack.callback(peer.close)
            peer.repeated(1)()
        base, mine, *others = alternate(
            rounds, PAIRS, floor, ours, *(peer.repeated(PAIRS) for peer in peers)
        )
    return [
        ratio(f"pair, sync / {BESIDE}", base, mine, 1.5),
        *(peer.row(BESIDE, base, times) for peer, times in zip(peers, others, strict=True)),
    ]


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    return [partial(pair, 9 if quick else 61)]
