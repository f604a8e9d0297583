"""The sockets that kazoo writes to, made to do less: requests that belong together go out at once.

Each send of a few bytes costs a system call and wakes somebody; that is most of what a request
costs. Kazoo sends and wakes for every single one.
"""

from __future__ import annotations

import select
import socket
from typing import Any

from .._concurrency import Mutex

ENOUGH = 65536  # bytes that are kept back
PATIENCE_MILLIS = 5000  # for a server that takes nothing any more


class Waker:
    """The end of a pair of sockets by which requests wake kazoo's thread, once for several."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._mutex = Mutex()
        self._held = 0  # how many hold it back
        self._count = 0

    def send(self, data: bytes) -> int:
        """Wake kazoo's thread for one more request, or soon."""
        with self._mutex:
            if self._held:
                self._count += len(data)
                return len(data)
        return self._end.send(data)

    def hold(self) -> None:
        """Wake nobody until `release`."""
        with self._mutex:
            self._held += 1

    def release(self) -> None:
        """Wake kazoo's thread for all that has come meanwhile."""
        with self._mutex:
            self._held -= 1
            count, self._count = self._count, 0
        if count:
            self._end.send(bytes(count))

    def close(self) -> None:
        """Close it."""
        self._end.close()


class Corked:
    """A connection that keeps back what is sent until `flush`, and is a plain socket else."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._out = bytearray()
        self.recv = connection.recv
        self.fileno = connection.fileno

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    @property
    def full(self) -> bool:
        """Whether it is time to send what was kept back."""
        return len(self._out) >= ENOUGH

    @property
    def waits(self) -> bool:
        """Whether something was kept back."""
        return bool(self._out)

    def send(self, data: bytes | memoryview) -> int:
        """Keep this back."""
        self._out += data
        return len(data)

    def flush(self) -> None:
        """Send all that was kept back."""
        while self._out:
            try:
                sent = self._connection.send(self._out)
            except BlockingIOError:
                poller = select.poll()
                poller.register(self._connection, select.POLLOUT)
                if not poller.poll(PATIENCE_MILLIS):
                    raise
                continue
            del self._out[:sent]
