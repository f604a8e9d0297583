"""Free ports of the loopback interface."""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"

# Below those that the system hands out by itself: while a server is down, no outgoing connection
# takes its port, and no client that connects to it in vain is connected to itself.
_FIRST, _BEYOND = 20_000, 32_000


def reserve() -> socket.socket:
    """Return a socket that keeps a free port from all others that ask here, until it is closed.

    A server that sets SO_REUSEADDR, as all do, can listen on the port meanwhile, and again after
    it was killed; while it does not, connections are refused.
    """
    for _ in range(1000):
        place = socket.socket()
        try:
            # Not `random`: workers that seed it alike would try the same ports.
            place.bind((LOOPBACK, _FIRST + secrets.randbelow(_BEYOND - _FIRST)))
        except OSError:
            place.close()
        else:
            # Only now: set before, it would let us in where somebody else has reserved.
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return place
    raise OSError(f"no port from {_FIRST} to {_BEYOND} of {LOOPBACK} is free")


def listen() -> socket.socket:
    """Return a socket that listens on a free port."""
    listener = reserve()
    listener.listen(1024)
    return listener


def reserved_port(stack: ExitStack) -> int:
    """Return a port that is reserved until the stack is closed."""
    return port_of(stack.enter_context(reserve()))


def port_of(place: socket.socket) -> int:
    """Return the port of a socket."""
    port: int = place.getsockname()[1]
    return port
