"""What ZooKeeper servers say of themselves when the doctor asks: in four letters, in greetings."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from ..zookeeper_link import Settings

TIMEOUT = 2.0  # seconds for one question
REFUSED = "is not executed because it is not in the whitelist"
LONGEST = 2**31 - 1  # milliseconds

Address = tuple[str, int]


class Bounds(NamedTuple):
    """How long a server keeps a session, at least and at most, in seconds."""

    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a server; what it does not say is missing."""

    where: str
    answers: bool
    version: tuple[int, ...] = ()
    mode: str = ""  # standalone, leader, follower or observer
    config: Mapping[str, str] | None = None  # None: it does not tell
    figures: Mapping[str, str] | None = None

    @property
    def tick(self) -> float | None:
        """Its tick in seconds, if it tells."""
        text = (self.config or {}).get("tickTime", "")
        return int(text) / 1000 if text.isdigit() else None

    @property
    def syncs(self) -> int | None:
        """How often it has waited for its disk since it started, if it tells."""
        text = (self.figures or {}).get("zk_cnt_fsynctime", "")
        return int(text) if text.isdigit() else None


def examine(settings: Settings, address: Address) -> Facts:
    """Ask one server; each question may be refused."""
    host, port = address
    where = f"{host}:{port}"
    said = ask(settings, address, "srvr")
    if said is None:
        return Facts(where, answers=False)
    lines = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
    number = lines.get("Zookeeper version", "").partition("-")[0].partition(",")[0]
    config, figures = ask(settings, address, "conf"), ask(settings, address, "mntr")
    return Facts(
        where,
        answers=True,
        version=tuple(int(part) for part in number.split(".") if part.isdigit()),
        mode=lines.get("Mode", ""),
        config=_table(config, "="),
        figures=_table(figures, "\t"),
    )


def _table(said: str | None, sign: str) -> dict[str, str] | None:
    if not said or REFUSED in said:
        return None
    return dict(line.split(sign, 1) for line in said.splitlines() if sign in line)


def ask(settings: Settings, address: Address, word: str) -> str | None:
    """Return what a server says to a word of four letters; None if it cannot be reached."""
    said = b""
    try:
        with _connect(settings, address) as connection:
            connection.sendall(word.encode())
            with suppress(TimeoutError):
                while chunk := connection.recv(65536):
                    said += chunk
    except OSError:
        return said.decode(errors="replace") or None
    return said.decode(errors="replace")


def bounds(settings: Settings, address: Address) -> Bounds | None:
    """Return how long a server keeps sessions, from two that are ended at once."""
    try:
        return Bounds(*(_negotiate(settings, address, millis) / 1000 for millis in (1, LONGEST)))
    except (OSError, struct.error):
        return None


def _negotiate(settings: Settings, address: Address, millis: int) -> int:
    with _connect(settings, address) as connection:
        greeting = struct.pack("!iqiqi16xb", 0, 0, millis, 0, 16, 0)
        connection.sendall(struct.pack("!i", len(greeting)) + greeting)
        (length,) = struct.unpack("!i", _read(connection, 4))
        _, granted = struct.unpack_from("!ii", _read(connection, length))
        connection.sendall(struct.pack("!iii", 8, 1, -11))  # goodbye
        with suppress(OSError):
            connection.recv(64)
    return int(granted)


def _read(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        chunk = connection.recv(length - len(data))
        if not chunk:
            raise ConnectionError("it has hung up")
        data += chunk
    return data


def _connect(settings: Settings, address: Address) -> socket.socket:
    connection = socket.create_connection(address, TIMEOUT)
    if settings.tls is None:
        return connection
    return settings.tls.wrap_socket(connection, server_hostname=address[0])
