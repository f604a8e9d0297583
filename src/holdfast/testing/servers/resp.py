"""Just enough of the Redis protocol (RESP2) to run one command in a test."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import IO, Any

from .errors import CommandRefused
from .ports import LOOPBACK


def run_commands(
    port: int, *commands: tuple[object, ...], ca_file: Path | None = None, timeout: float = 10.0
) -> Any:
    """Run commands on a connection of their own; return the last reply, of str, int, list, None."""
    with socket.create_connection((LOOPBACK, port), timeout) as plain:
        if ca_file is None:
            return _exchange(plain, commands)
        context = ssl.create_default_context(cafile=ca_file)
        with context.wrap_socket(plain, server_hostname=LOOPBACK) as wrapped:
            return _exchange(wrapped, commands)


def _exchange(connection: socket.socket, commands: tuple[tuple[object, ...], ...]) -> Any:
    reply: Any = None
    with connection.makefile("rb") as stream:
        for command in commands:
            connection.sendall(encode(command))
            reply = read_reply(stream)
            if isinstance(reply, CommandRefused):
                raise reply
    return reply


def encode(command: tuple[object, ...]) -> bytes:
    """Return a command as it is sent."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


def read_reply(stream: IO[bytes]) -> Any:
    """Return the next reply; an error is returned too, since one may stand inside an array."""
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("the server closed the connection before its reply was complete")
    kind, rest = line[:1], line[1:-2].decode(errors="surrogateescape")
    if kind == b"+":
        return rest
    if kind == b"-":
        return CommandRefused(rest)
    if kind == b":":
        return int(rest)
    if int(rest) < 0:
        return None
    if kind == b"*":
        return [read_reply(stream) for _ in range(int(rest))]
    return stream.read(int(rest) + 2)[:-2].decode(errors="surrogateescape")
