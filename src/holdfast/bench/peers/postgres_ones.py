"""Locks on PostgreSQL: advisory ones, which end with the session."""

from __future__ import annotations

import hashlib
from importlib import import_module

from ..contestant import Contestant, insisting
from ..handle import PATIENCE, Handle

LACKS = "no token, no TTL, a connection for each lock"


class Advisory(Contestant):
    """pg_advisory_lock by hand through psycopg, as people write it: a connection for each lock."""

    name = "pg_advisory_lock"
    package = "psycopg"
    lacks = LACKS

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        return self._handle(key, "")

    def modes(self, key: str) -> tuple[Handle, Handle]:
        """See Contestant."""
        return self._handle(key, "_shared"), self._handle(key, "")

    def _handle(self, key: str, suffix: str) -> Handle:
        connection = import_module("psycopg").connect(self.place.url, autocommit=True)
        self.stack.callback(connection.close)
        connection.execute(f"SET lock_timeout = '{PATIENCE:g}s'")
        number = (int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big"),)
        take = f"SELECT pg_advisory_lock{suffix}(%s)"
        give = f"SELECT pg_advisory_unlock{suffix}(%s)"
        return Handle(
            lambda: connection.execute(take, number, prepare=True),
            lambda: connection.execute(give, number, prepare=True),
        )


class Pals(Contestant):
    """pals: advisory locks through SQLAlchemy, each on a connection of its pool."""

    name = "pals"
    package = "pals"
    lacks = LACKS

    def open(self) -> None:
        """Make a pool that has a connection for everybody."""
        sql = import_module("sqlalchemy")
        url = self.place.url.replace("postgresql://", "postgresql+psycopg://", 1)
        engine = sql.create_engine(url, pool_size=100, max_overflow=20)
        self.stack.callback(engine.dispose)
        self._locker = import_module("pals").Locker("bench", create_engine_callable=lambda: engine)

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        lock = self._locker.lock(key, acquire_timeout=int(PATIENCE * 1000))
        return Handle(insisting(lock.acquire), lock.release)
