"""Locks on Redis, on one server or on several."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from ..contestant import Contestant, insisting
from ..handle import PATIENCE, Handle, NotHeld
from .tooz_ones import Tooz

LACKS = "no token, no queue"


class _OnRedis(Contestant):
    """Through redis-py's client: one for each server, shared by all threads."""

    lacks = LACKS
    package = "redis"

    def open(self) -> None:
        """Make the clients."""
        self.clients = [self._client(address) for address in self.place.addresses]

    def _client(self, address: str) -> Any:
        made = import_module("redis").Redis.from_url(f"redis://{address}")
        self.stack.callback(made.close)
        return made


class RedisPy(_OnRedis):
    """redis-py's own lock."""

    name = "redis-py Lock"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        lock = self.clients[0].lock(f"redis-py/{key}", timeout=self.ttl, blocking_timeout=PATIENCE)
        return Handle(insisting(lock.acquire), lock.release)


class PythonRedisLock(_OnRedis):
    """python-redis-lock: waiters block in a list, so that one of them is woken."""

    name = "python-redis-lock"
    package = "python-redis-lock"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        made = import_module("redis_lock").Lock(self.clients[0], key, expire=max(1, int(self.ttl)))
        return Handle(insisting(made.acquire), made.release)


class RedlockPy(_OnRedis):
    """redlock-py: node by node, three tries, then it gives up; its user tries again."""

    name = "redlock-py"
    package = "redlock-py"
    patience = PATIENCE

    def open(self) -> None:
        """Make the manager of all servers."""
        super().open()
        self._manager = import_module("redlock").Redlock(self.clients)

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        held: list[Any] = []

        def acquire() -> None:
            end = time.monotonic() + self.patience
            while not (got := self._manager.lock(f"redlock-py/{key}", int(self.ttl * 1000))):
                if time.monotonic() > end:
                    raise NotHeld
            held.append(got)

        return Handle(acquire, lambda: self._manager.unlock(held.pop()))


class Pottery(_OnRedis):
    """pottery's Redlock: all nodes at once, on threads."""

    name = "pottery"
    package = "pottery"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        lock = import_module("pottery").Redlock(
            key=key, masters=set(self.clients), auto_release_time=self.ttl
        )
        # It does not wait for all nodes, so a late one may keep a key that was released before.
        return Handle(insisting(lambda: lock.acquire(timeout=PATIENCE)), lock.release)


class SherlockRedis(_OnRedis):
    """sherlock on Redis: it looks every 0.1 s."""

    name = "sherlock"
    package = "sherlock"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        lock = import_module("sherlock").RedisLock(
            f"sherlock/{key}",
            client=self.clients[0],
            expire=max(1, int(self.ttl)),
            timeout=PATIENCE,
            retry_interval=0.1,
        )
        return Handle(insisting(lock.acquire), lock.release)


class ToozRedis(Tooz):
    """tooz on Redis, over redis-py's lock."""

    scheme = "redis://{address}?lock_timeout={ttl}"
