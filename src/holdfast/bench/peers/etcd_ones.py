"""Locks on etcd."""

from __future__ import annotations

import time
from importlib import import_module

from ..contestant import Contestant, host_and_port
from ..handle import PATIENCE, Handle, NotHeld
from .tooz_ones import Tooz

POLL = 0.1  # seconds


class Etcd3gw(Contestant):
    """The lock of etcd3gw, over etcd's JSON gateway; each takes a lease of its own.

    It cannot wait: its user looks again, here every 0.1 s.
    """

    name = "etcd3gw Lock"
    package = "etcd3gw"
    lacks = "no token, no queue"

    def open(self) -> None:
        """Make a client."""
        host, port = host_and_port(self.place.addresses[0])
        self._client = import_module("etcd3gw").client(host=host, port=port)
        self.stack.callback(self._client.session.close)

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        lock = self._client.lock(key, ttl=max(1, int(self.ttl)))

        def acquire() -> None:
            end = time.monotonic() + PATIENCE
            while not lock.acquire():
                if time.monotonic() > end:
                    raise NotHeld
                time.sleep(POLL)

        return Handle(acquire, lock.release)


class ToozEtcd(Tooz):
    """tooz on etcd, over etcd3gw."""

    scheme = "etcd3+http://{address}?lock_timeout={ttl}"
