"""One connection through a proxy, and the faults that it is under.

Rule 1: a stream has no holes. A connection that has lost a reply loses all that follow, and does
        not outlive the fault: its client would take one reply for another, as no network does.
        Pushes are the exception: nobody waits for one in particular.
Rule 2: what is cut is late, not lost: it is not even read, so requests wait in the kernel, and
        the end of a connection waits behind them, as packets do that are sent again.
"""

from __future__ import annotations

import math
import re
import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from selectors import EVENT_READ, EVENT_WRITE

from .ports import LOOPBACK

_SUBSCRIPTION = re.compile(rb"\n[SP]?SUBSCRIBE\r|\bLISTEN \"", re.IGNORECASE)
_CHUNK = 256 * 1024
_ENOUGH = 64  # chunks that are kept before no more is read
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, and tell the other side so


@dataclass(eq=False)
class Trap:
    """The reply to one request that is to be lost."""

    matching: bytes
    sprung: threading.Event = field(default_factory=threading.Event)


@dataclass
class Faults:
    """What is wrong with the network."""

    cut: bool = False
    lossy: float = 0  # on how many more connections replies are lost
    pushes_lost: bool = False
    pushes_held: bool = False
    delay: float = 0.0  # of each reply
    traps: list[Trap] = field(default_factory=list)


class Flow:
    """One direction: what was read and is not yet written, each chunk with its time to go on."""

    def __init__(self) -> None:
        self.chunks: deque[tuple[float, bytes]] = deque()
        self.ended = False  # nothing more to read
        self.closed = False  # and the other side knows
        self.stuck = False  # the other side takes no more now

    @property
    def hungry(self) -> bool:
        """Whether there is more to read, and room for it."""
        return not self.ended and len(self.chunks) < _ENOUGH

    def read(self, source: socket.socket) -> bytes:
        """Return what has arrived, if anything."""
        if not self.hungry:
            return b""
        try:
            chunk = source.recv(_CHUNK)
        except BlockingIOError:
            return b""
        self.ended = not chunk
        return chunk

    def has_due(self, now: float) -> bool:
        """Say whether a chunk is to go on now."""
        return bool(self.chunks) and self.chunks[0][0] <= now

    def write(self, sink: socket.socket, now: float) -> None:
        """Send on what is due, and the end once nothing is left."""
        self.stuck = False
        while self.has_due(now):
            time, chunk = self.chunks.popleft()
            try:
                sent = sink.send(chunk)
            except BlockingIOError:
                sent = 0
            if sent < len(chunk):
                self.chunks.appendleft((time, chunk[sent:]))
                self.stuck = True
                return
        if self.ended and not self.chunks and not self.closed:
            sink.shutdown(socket.SHUT_WR)
            self.closed = True


class Link:
    """A client's connection, and the one to the server that is made for it when nothing is cut."""

    def __init__(self, client: socket.socket, target: int) -> None:
        self._client, self._server = client, socket.socket()
        self._target: int | None = target  # until it is connected
        self._requests, self._replies = Flow(), Flow()
        self._subscribed = False
        self._trap: Trap | None = None
        self._broken = False
        self.lossy = False
        self._client.setblocking(False)
        for end in self.ends:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def ends(self) -> tuple[socket.socket, socket.socket]:
        """The socket on the client's side and the one on the server's."""
        return self._client, self._server

    @property
    def abandoned(self) -> bool:
        """Whether the client has said that nothing more will come."""
        return self._requests.ended

    @property
    def over(self) -> bool:
        """Whether nothing will come any more, from either side."""
        return self._broken or (self._requests.closed and self._replies.closed)

    def advance(self, faults: Faults, now: float) -> int:
        """Move what can be moved now; return how many requests came."""
        requests = 0
        if not faults.cut:
            try:
                self._connect()
                requests = self._take_request(faults, now)
                self._requests.write(self._server, now)
                if not self._held(faults):
                    self._answer(faults, now)
            except OSError:
                self._broken = True
        return requests

    def interest(self, faults: Faults) -> list[tuple[socket.socket, int]]:
        """Return what each end is to be watched for: nothing that could not be moved now."""
        if faults.cut:
            return [(self._client, 0), (self._server, 0)]
        client = EVENT_READ * self._requests.hungry | EVENT_WRITE * self._replies.stuck
        answers = self._replies.hungry and not self._held(faults)
        server = EVENT_READ * answers | EVENT_WRITE * self._requests.stuck
        return [(self._client, client), (self._server, server)]

    def due(self, faults: Faults) -> float:
        """Return when a delayed reply is to go on, infinity if another event comes first."""
        if faults.cut or self._held(faults) or self._replies.stuck or not self._replies.chunks:
            return math.inf
        return self._replies.chunks[0][0]

    def close(self) -> None:
        """Close both ends: with a reset, unless each has said that it is over."""
        for end in self.ends:
            if not (self._requests.closed and self._replies.closed):
                with suppress(OSError):  # macOS refuses on an end that was reset already
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.close()

    def _connect(self) -> None:
        if self._target is not None:
            # On this machine it is done at once, or refused.
            self._server.settimeout(1.0)
            self._server.connect((LOOPBACK, self._target))
            self._server.setblocking(False)
            self._target = None

    def _take_request(self, faults: Faults, now: float) -> int:
        chunk = self._requests.read(self._client)
        if not chunk:
            return 0
        self._subscribed |= _SUBSCRIPTION.search(chunk) is not None
        trap = next((trap for trap in faults.traps if trap.matching in chunk), None)
        if trap is not None:
            faults.traps.remove(trap)
            self._trap = trap
        self._requests.chunks.append((now, chunk))
        return 1

    def _answer(self, faults: Faults, now: float) -> None:
        chunk = self._replies.read(self._server)
        if chunk:
            self._replies.chunks.append((now + faults.delay, chunk))
        while self._replies.has_due(now) and self._loses(faults):
            self._replies.chunks.popleft()
        self._replies.write(self._client, now)

    def _held(self, faults: Faults) -> bool:
        return faults.pushes_held and self._subscribed

    def _loses(self, faults: Faults) -> bool:
        """Say whether the next reply is lost, and the connection with it."""
        if self._trap is not None:
            self._trap.sprung.set()
            raise ConnectionResetError("its reply was to be lost, and then the connection")
        if not self.lossy and faults.lossy > 0:
            faults.lossy -= 1
            self.lossy = True
        return self.lossy or (faults.pushes_lost and self._subscribed)
