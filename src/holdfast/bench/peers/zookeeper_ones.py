"""Locks on ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from ..contestant import Contestant, insisting
from ..handle import PATIENCE, Handle
from .tooz_ones import Tooz


def kazoo_client(stack: ExitStack, address: str, ttl: float) -> Any:
    """Return a client of kazoo as it comes, stopped with the stack."""
    client = import_module("kazoo.client").KazooClient(address, timeout=ttl)
    client.start()
    stack.callback(client.close)
    stack.callback(client.stop)
    return client


class Kazoo(Contestant):
    """kazoo's own recipes, on one session for a process."""

    name = "kazoo Lock"
    package = "kazoo"
    lacks = "no token"

    def open(self) -> None:
        """Start a session."""
        self._client = kazoo_client(self.stack, ",".join(self.place.addresses), self.ttl)

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        return self._handle(self._client.Lock, key)

    def modes(self, key: str) -> tuple[Handle, Handle]:
        """See Contestant."""
        client = self._client
        return self._handle(client.ReadLock, key), self._handle(client.WriteLock, key)

    def _handle(self, make: Callable[[str], Any], key: str) -> Handle:
        lock = make(f"/kazoo/{key}")
        return Handle(insisting(lambda: lock.acquire(timeout=PATIENCE)), lock.release)


class ToozZooKeeper(Tooz):
    """tooz on ZooKeeper, over kazoo's lock."""

    lacks = "no token"
    scheme = "zookeeper://{addresses}?timeout={ttl}"
