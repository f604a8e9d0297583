"""Free ports of the loopback interface."""

from __future__ import annotations

import secrets
import socket

LOOPBACK = "127.0.0.1"

# Below those that the system hands out by itself: while a server is down, no outgoing connection
# takes its port, and no client that connects to it in vain is connected to itself.
_FIRST, _BEYOND = 20_000, 32_000


def listen() -> socket.socket:
    """Return a socket that listens on a free port."""
    for _ in range(1000):
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Not `random`: workers that seed it alike would try the same ports.
            listener.bind((LOOPBACK, _FIRST + secrets.randbelow(_BEYOND - _FIRST)))
            listener.listen(1024)
        except OSError:
            listener.close()
        else:
            return listener
    raise OSError(f"no port from {_FIRST} to {_BEYOND} of {LOOPBACK} is free")


def free_port() -> int:
    """Return a port that was free a moment ago; somebody else may be quicker."""
    with listen() as listener:
        port: int = listener.getsockname()[1]
    return port
