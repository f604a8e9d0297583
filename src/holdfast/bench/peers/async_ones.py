"""Locks of others that can be awaited."""

from __future__ import annotations

import hashlib
from importlib import import_module

from ..async_contestant import AsyncContestant, AsyncHandle
from ..handle import PATIENCE, NotHeld
from .postgres_ones import LACKS


class RedisPyAsync(AsyncContestant):
    """The lock of redis.asyncio."""

    name = "redis-py Lock"
    package = "redis"
    lacks = "no token, no queue"

    async def open(self) -> None:
        """Make a client."""
        made = import_module("redis.asyncio").Redis.from_url(f"redis://{self.place.addresses[0]}")
        self.stack.push_async_callback(made.aclose)
        self._client = made

    async def lock(self, key: str) -> AsyncHandle:
        """See AsyncContestant."""
        name = f"redis-py/{key}"
        lock = self._client.lock(name, timeout=self.ttl, blocking_timeout=PATIENCE)

        async def acquire() -> None:
            if not await lock.acquire():
                raise NotHeld

        return AsyncHandle(acquire, lock.release)


class AdvisoryAsync(AsyncContestant):
    """pg_advisory_lock by hand through psycopg: a connection for each lock."""

    name = "pg_advisory_lock"
    package = "psycopg"
    lacks = LACKS

    async def lock(self, key: str) -> AsyncHandle:
        """See AsyncContestant."""
        kind = import_module("psycopg").AsyncConnection
        connection = await kind.connect(self.place.url, autocommit=True)
        self.stack.push_async_callback(connection.close)
        number = (int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big"),)
        return AsyncHandle(
            lambda: connection.execute("SELECT pg_advisory_lock(%s)", number, prepare=True),
            lambda: connection.execute("SELECT pg_advisory_unlock(%s)", number, prepare=True),
        )


ASYNC_PEERS: dict[str, tuple[type[AsyncContestant], ...]] = {
    "redis": (RedisPyAsync,),
    "valkey": (RedisPyAsync,),
    "postgresql": (AdvisoryAsync,),
}
