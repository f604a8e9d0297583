"""One blocking socket with its parser: how it is made, step by step, and how it is used.

Rule 1: what is not there yet, TCP, TLS or greeting, is made by the same steps for one server and
        for many: `drive` lets them all progress at once, in the caller's thread.
Rule 2: it never closes itself: whoever sees it fail does.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import struct
import sys
import time
from collections.abc import Sequence
from typing import Any

import hiredis

from ..clocks import Clock
from .settings import Settings
from .wire import Greeting, Reply, hello, read_greeting

CHUNK = 65536
SMALL = 400  # most replies; room for more costs time even if it stays empty
KERNEL_TIMEOUTS = sys.platform == "linux"  # a time-out without a poll() before every recv()
NEAR, FAIR = 0.9, 0.95  # how exactly a time-out is kept, for the sake of not setting it each time
SEND_MOST = 5.0  # seconds that the first request of a connection may take to leave
CLOSED = "the connection was closed"

_PENDING = (0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR)


def _addresses(settings: Settings) -> list[tuple[int, Any]]:
    if settings.path:
        return [(socket.AF_UNIX, settings.path)]
    found = socket.getaddrinfo(*settings.address(), type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]


class Connection:
    """One socket with its parser; `greeting` is None until the server has greeted us."""

    __slots__ = (
        *("_addresses", "_clock", "_left", "_replies", "_timeout", "_tls", "greeted_from"),
        *(
            "announced",
            "greeting",
            "reader",
            "reply",
            "request",
            "settings",
            "socket",
            "used",
            "wants",
        ),
    )

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self.reader = hiredis.Reader()
        self.greeting: Greeting | None = None
        self.announced = False  # the link has heard of the greeting
        self.request = b""
        self.reply: Reply = False
        self.used = 0.0
        self.greeted_from = 0.0  # before the server looked at its clock
        self.wants = select.POLLOUT
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

    def step(self) -> bool:
        """Do what can be done without waiting; say whether the reply is there."""
        if self.greeting is None and not self._greet():
            return False
        if self.request:
            request, self.request = self.request, b""
            self.set_timeout(SEND_MOST)
            self.socket.sendall(request)
            if self._tls:  # it may be readable and have nothing for us: half a record
                self.socket.setblocking(False)
                self._timeout = -1.0
            self.wants = select.POLLIN
            return False
        if self.reply is False:
            self.receive()
        return self.reply is not False

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
        self.receive()
        while self.reply is not False:
            self._replies.append(self.reply)
            self.reply = self.reader.gets()
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

    # --- Being used. ---

    def receive(self) -> None:
        """Read what is there, or wait for it as long as the socket may; `reply` is False if not."""
        try:
            data = self.socket.recv(CHUNK)
        except ssl.SSLWantReadError:
            return
        if not data:
            raise ConnectionError(CLOSED)
        self.reader.feed(data)
        while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            self.reader.feed(self.socket.recv(CHUNK))
        self.reply = self.reader.gets()

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

    def begin(self, request: bytes, timeout: float) -> None:
        """Send a request, on a connection that is ready, to be finished later."""
        self.reply = False
        self.wants = select.POLLIN
        try:
            if not NEAR * timeout <= self._timeout <= timeout:
                self.set_timeout(timeout)
            self.socket.sendall(request)
        except OSError as error:
            self.reply = error

    def finish(self) -> Reply:
        """Wait for the reply, but not for the second half of one; False if it is not there, or if
        there is an error instead, as `reply`."""
        if self.reply is not False:
            return False  # it could not even be sent
        try:
            data = self.socket.recv(SMALL)
            if not data:
                raise ConnectionError(CLOSED)
            self.reader.feed(data)
            self.reply = reply = self.reader.gets()
        except (BlockingIOError, TimeoutError):
            return False
        except OSError as error:
            self.reply = error
            return False
        return reply

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

    def stale(self) -> bool:
        """Say whether an idle connection has something to read: its end, as a rule."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close it, without a goodbye."""
        self.socket.close()


def drive(connections: Sequence[Connection], deadline: float) -> None:
    """Let each get its reply, all at once, until a deadline of time.monotonic().

    What fails gets its exception as reply, what does not answer in time keeps False.
    """
    poll = select.poll()
    waiting: dict[int, Connection] = {}
    for connection in connections:
        waiting[connection.socket.fileno()] = connection
        poll.register(connection.socket, connection.wants)
    while waiting:
        left = deadline - time.monotonic()
        ready = poll.poll(max(0.0, left) * 1000)
        if not ready:
            return
        for file, _ in ready:
            connection = waiting[file]
            before = connection.wants
            try:
                done = connection.step()
            except Exception as error:
                connection.reply = error
                done = True
            if done:
                connection.used = time.monotonic()
                poll.unregister(file)
                del waiting[file]
            elif connection.socket.fileno() != file:  # it tries the next address
                poll.unregister(file)
                del waiting[file]
                file = connection.socket.fileno()
                waiting[file] = connection
                poll.register(file, connection.wants)
            elif connection.wants != before:
                poll.modify(file, connection.wants)
