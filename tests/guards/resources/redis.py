"""A counter in Redis: read by the client, written by a script that judges the token first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from holdfast._sync.guards.redis import RedisGuard
from holdfast.guards import Fence
from tests.guards.contest import Resource

COUNTER = "counter"


class RedisCounter(Resource):
    """A key; `begin` stands before the read."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._client = redis.Redis.from_url(address)
        self._guard = RedisGuard(self._client)

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        """Start a server."""
        # Here, because no contender needs it, and it imports a lot.
        from holdfast.testing.servers import RedisServer, need, redis_program

        with RedisServer(need(redis_program)) as server:
            yield server.url

    def create(self) -> None:
        """Set it to 0."""
        self._client.set(COUNTER, 0)

    def value(self) -> int:
        """Return what it says."""
        return int(str(self._client.get(COUNTER), "ascii"))  # type: ignore[arg-type]

    def increment(self, fence: Fence, guarded: bool, pause: Callable[[], None]) -> None:
        """Read, pause, set."""
        if guarded:
            self._guard.begin(COUNTER, fence)
        value = self.value()
        pause()
        if guarded:
            self._guard.execute(COUNTER, fence, "SET", COUNTER, value + 1)
        else:
            self._client.set(COUNTER, value + 1)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
