"""One blocking socket with its parser: how it is made, step by step, and how it is used.

Rule 1: what is not there yet, TCP, TLS or greeting, is made by the same steps for one server and
        for many: `drive` lets them all progress at once, in the caller's thread.
Rule 2: replies come in the order of requests. Who does not wait for one leaves it to whoever uses
        the connection next, who reads it before his own, and puts it where it belongs.
Rule 3: where a connection ends, each request without a reply gets an error instead.
"""

from __future__ import annotations

import errno
import math
import os
import select
import socket
import ssl
import struct
import sys
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import hiredis

from ..clocks import Clock
from .round import Round
from .settings import Settings
from .wire import CLOSED, Greeting, Reply, hello, read_greeting, silent, unreachable

CHUNK = 65536
SMALL = 400  # most replies; room for more costs time even if it stays empty
KERNEL_TIMEOUTS = sys.platform == "linux"  # a time-out without a poll() before every recv()
NEAR, FAIR = 0.9, 0.95  # how exactly a time-out is kept, for the sake of not setting it each time
SEND_MOST = 5.0  # seconds that the first request of a connection may take to leave
UNASKED = "it said something that nobody had asked for"

_PENDING = (0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR)


def _addresses(settings: Settings) -> list[tuple[int, Any]]:
    if settings.path:
        return [(socket.AF_UNIX, settings.path)]
    found = socket.getaddrinfo(*settings.address(), type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]


class Connection:
    """One socket with its parser; `greeting` is None until the server has greeted us."""

    __slots__ = (
        *("_addresses", "_clock", "_left", "_replies", "_request", "_timeout", "_tls"),
        *("announced", "awaited", "broken", "greeted_from", "greeting", "latency", "listens"),
        *("reader", "settings", "socket", "trusted_until", "wants"),
    )

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self.reader = hiredis.Reader()
        self.greeting: Greeting | None = None
        self.announced = False  # the link has heard of the greeting
        self.broken = False
        # Whose turn it is: a round, the number of our answer in it, when it was sent, and when
        # nobody wants it any more.
        self.awaited: deque[tuple[Round, int, float, float]] = deque()
        self.listens = False  # what comes beyond the answers is for whoever listens
        self.trusted_until = 0.0  # until when it may be used without a look at it
        self.latency = math.inf  # seconds that its last answer took
        self.greeted_from = 0.0  # before the server looked at its clock
        self.wants = select.POLLOUT
        self._request = b""  # to be sent once we are greeted
        self._timeout = -1.0
        self._tls = settings.tls is not None
        self._replies: list[Reply] = []
        self._left = 0
        self._addresses = _addresses(settings)
        self.socket: socket.socket
        self._connect()

    # --- Being made. ---

    def _connect(self) -> None:
        """Begin to connect to the next address."""
        family, address = self._addresses.pop(0)
        self.wants = select.POLLOUT
        try:
            self.socket = socket.socket(family, socket.SOCK_STREAM)
        except OSError:  # this machine has no such addresses
            if not self._addresses:
                raise
            self._connect()
            return
        try:
            self.socket.setblocking(False)
            if family != socket.AF_UNIX:
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._check(self.socket.connect_ex(address))
        except BaseException:
            self.socket.close()
            raise

    def _check(self, code: int) -> None:
        """Go on after a step of connecting, with the next address if this one is no good."""
        if code in _PENDING:
            return
        if not self._addresses:
            raise OSError(code, os.strerror(code))
        self.socket.close()
        self._connect()

    def step(self, looked: bool) -> None:
        """Do what can be done without waiting; `looked`: what is there now was not there before."""
        if self.greeting is not None:
            self.receive(looked)
        elif self._greet() and self._request:
            self._send(self._request, SEND_MOST)
            self._request = b""

    def _greet(self) -> bool:
        if self._left == 0:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self._check(code)
                return False
            if self._tls and not self._shake_hands():
                return False
            data, self._left = hello(self.settings)
            self.greeted_from = self._clock()
            self.socket.sendall(data)
            self.wants = select.POLLIN
            return False
        self.fetch()
        while (reply := self.reader.gets()) is not False:
            self._replies.append(reply)
        if len(self._replies) < self._left:
            return False
        self.greeting = read_greeting(self.settings, self._replies)
        if not self._tls:
            self.socket.setblocking(True)
        return True

    def _shake_hands(self) -> bool:
        assert self.settings.tls is not None
        if not isinstance(self.socket, ssl.SSLSocket):
            self.socket = self.settings.tls.wrap_socket(
                self.socket, server_hostname=self.settings.host, do_handshake_on_connect=False
            )
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            self.wants = select.POLLIN
            return False
        except ssl.SSLWantWriteError:
            self.wants = select.POLLOUT
            return False
        return True

    # --- Being used by one at a time. ---

    def converse(self, request: bytes, timeout: float) -> Reply:
        """Send a request and wait for its reply, on a connection that is ready."""
        if not NEAR * timeout <= self._timeout <= timeout:
            self.set_timeout(timeout)
        self.socket.sendall(request)
        reader = self.reader
        while True:
            data = self.socket.recv(SMALL)
            if not data:
                raise ConnectionError(CLOSED)
            reader.feed(data)
            reply = reader.gets()
            if reply is not False:
                return reply

    # --- Being used in rounds. ---

    def ask(self, request: bytes, round: Round, number: int, sent: float, timeout: float) -> None:
        """Send a request, now or when we are greeted; what comes of it is put into the round."""
        self.awaited.append((round, number, sent, sent + timeout))
        if self.greeting is None:
            self._request = request
            return
        try:
            self._send(request, timeout)
        except OSError as error:
            self.break_off(error)

    def _send(self, request: bytes, timeout: float) -> None:
        if not NEAR * timeout <= self._timeout <= timeout:
            self.set_timeout(timeout)
        self.socket.sendall(request)
        if self._tls:  # it may be readable and have nothing for us: half a record
            self.socket.setblocking(False)
            self._timeout = -1.0

    def fetch(self) -> None:
        """Let the parser have what is there, or what comes as long as the socket may wait."""
        try:
            data = self.socket.recv(CHUNK if self._tls else SMALL)
            if not data:
                raise ConnectionError(CLOSED)
            self.reader.feed(data)
            if isinstance(self.socket, ssl.SSLSocket):
                while self.socket.pending():
                    self.reader.feed(self.socket.recv(CHUNK))
            elif len(data) == SMALL:
                self.reader.feed(self.socket.recv(CHUNK, socket.MSG_DONTWAIT))
        except (ssl.SSLWantReadError, BlockingIOError):
            pass

    def receive(self, looked: bool) -> None:
        """Put what is there to read where it is awaited."""
        self.fetch()
        now, gets, awaited = time.monotonic(), self.reader.gets, self.awaited
        while awaited or not self.listens:
            if (reply := gets()) is False:
                break
            if not awaited:
                raise ConnectionError(UNASKED)
            round, number, sent, _ = awaited.popleft()
            if looked or not round.decided or now - sent < self.latency:
                self.latency = now - sent  # else it was there before, who knows for how long
            round.put(number, reply)

    def catch_up(self) -> None:
        """Read what came while nobody looked; break off if it has ended, or an answer is due."""
        try:
            while self._readable(0.0):
                self.receive(looked=False)
        except Exception as error:
            self.break_off(error)
        if self.awaited and self.awaited[0][3] <= time.monotonic():
            self.give_up()

    def hear_out(self) -> None:
        """Wait for what is still awaited, as long as anybody would."""
        self.catch_up()
        try:
            while self.awaited and self._readable(self.awaited[0][3] - time.monotonic()):
                self.receive(looked=True)
        except Exception as error:
            self.break_off(error)
        if self.awaited:
            self.give_up()

    def _readable(self, timeout: float) -> bool:
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout) * 1000))

    def give_up(self) -> None:
        """Break off because the answer that is due did not come in time."""
        _, _, sent, deadline = self.awaited[0]
        within = f"within {deadline - sent:.3g} s"
        self.break_off(f"no answer {within}" if self.greeting is None else within)

    def break_off(self, why: Exception | str) -> None:
        """Close it, and let everybody who awaits something know that it will not come."""
        self.broken = True
        self.close()
        error: Exception
        if self.greeting is not None:
            error = silent(self.settings, str(why))
        elif isinstance(why, OSError | str):
            error = unreachable(self.settings, why)
        else:
            error = why  # it did not greet us properly
        while self.awaited:
            round, number, _, _ = self.awaited.popleft()
            round.put(number, error)

    def set_timeout(self, timeout: float) -> None:
        """Let the socket wait that long at most."""
        timeout *= FAIR  # a little less than allowed: the next one may allow a little less
        self._timeout = timeout
        if not KERNEL_TIMEOUTS or self._tls:
            self.socket.settimeout(max(0.001, timeout))
            return
        whole = int(max(0.001, timeout) * 1_000_000)
        value = struct.pack("@ll", whole // 1_000_000, whole % 1_000_000)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)

    def close(self) -> None:
        """Close it, without a goodbye."""
        self.socket.close()


def drive(connections: Iterable[Connection], round: Round, deadline: float) -> None:
    """Let all of them progress until the round is decided, or until an instant of monotonic()."""
    poll = select.poll()
    waiting: dict[int, Connection] = {}
    for connection in connections:
        if not connection.broken:
            file = connection.socket.fileno()
            waiting[file] = connection
            poll.register(file, connection.wants)
    looked = False
    while not round.decided:
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            return
        for file, _ in ready:
            connection = waiting[file]
            before = connection.wants
            try:
                connection.step(looked)
            except Exception as error:
                poll.unregister(file)
                connection.break_off(error)
                continue
            if connection.wants == before and connection.greeting is not None:
                continue
            if connection.socket.fileno() == file:
                poll.modify(file, connection.wants)
            else:  # it tries the next address
                poll.unregister(file)
                file = connection.socket.fileno()
                waiting[file] = connection
                poll.register(file, connection.wants)
        looked = True
