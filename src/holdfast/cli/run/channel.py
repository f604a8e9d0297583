"""The channel between front and holder: short JSON messages over a socket pair."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import suppress
from typing import Any

Message = dict[str, Any]


class Channel:
    """One end. `closed` turns true when the process at the other end is gone."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._end.setblocking(False)
        self._rest = b""
        self.closed = False

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Return both ends."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    def fileno(self) -> int:
        """Return the descriptor that turns readable when there is news."""
        return self._end.fileno()

    def send(self, **message: object) -> None:
        """Send a message; never waits. A full buffer means that the other end is stopped."""
        with suppress(OSError):  # its end is noticed by reading; what it missed is told again
            self._end.send(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[Message]:
        """Return the messages that have come."""
        while not self.closed:
            try:
                data = self._end.recv(65536)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            self.closed = not data
            self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]

    def signal_news(self, wanted: bool) -> None:
        """Let news raise SIGIO in this process, so that they end a wait somewhere else."""
        flags = fcntl.fcntl(self._end, fcntl.F_GETFL)
        if wanted:
            fcntl.fcntl(self._end, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(self._end, fcntl.F_SETFL, flags | os.O_ASYNC)
        else:
            fcntl.fcntl(self._end, fcntl.F_SETFL, flags & ~os.O_ASYNC)

    def close(self) -> None:
        """Close this end."""
        self._end.close()


class WakePipe:
    """Wakes a `select` of this process, from a signal handler or another thread."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """Return the descriptor that turns readable."""
        return self._read

    def wake(self, *_: object) -> None:
        """Wake it; fit for a signal handler and for any callback."""
        with suppress(OSError):
            os.write(self._write, b"!")

    def drain(self) -> None:
        """Forget the wake-ups so far."""
        with suppress(OSError):
            while os.read(self._read, 4096):
                pass
