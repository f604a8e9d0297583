"""How kazoo runs inside holdfast: one thread per session, with an eye on the clock.

Rule 1: kazoo's thread is the only one. Answers, watches and changes of state are told from it, and
        whoever is told must not block.
Rule 2 (S11): a server that has answered has heard of us since we asked. If it follows, its leader
        learns of that within half a tick, which is at most a quarter of the session, and in order
        with all else that the server tells it. So a write that a majority has agreed to proves that
        whatever was answered `settling` before it was sent has counted, from when it was asked.
        A new connection the leader hears of at once.
Rule 3: something is asked every `pace`, so that a proof is never much older than the write.
Rule 4: a server that owes an answer for `patience` is left for another; kazoo by itself waits for
        ever while requests go out. One that does not greet is left as well.
"""

from __future__ import annotations

import errno
import math
import select
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.handlers.threading import (  # type: ignore[import-untyped]
    SequentialThreadingHandler,
)

from ..clocks import Clock
from .answers import Answer
from .sockets import Corked, Waker

SETTLING = 0.29  # of the session: what was answered has counted by then
SETTLING_TICKS = 0.75  # the same in ticks, of which it takes half a one
PACE = 0.1  # of the session, between signs of life
PATIENCE = 0.25  # of the session, without an answer
LEAST_PATIENCE = 0.5  # seconds
GREETING = 1 / 6  # of the session, for a new connection
LEAST_GREETING, MOST_GREETING = 1.0, 3.0  # seconds; one that is just starting may never greet
GRAIN = 1 / 16  # of the settling: answers closer together than that are one
REMEMBERED = 64  # answers; more than come before one of them has settled
SLICE = 0.05  # seconds between looks whether to stop, where nobody can wake us

Files = Sequence[Any]
_Ready = tuple[list[Any], list[Any], list[Any]]


class Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Everything that kazoo does through its handler, for one session of `ttl` seconds."""

    name = "holdfast"

    def __init__(
        self,
        clock: Clock,
        ttl: float,
        tick: float | None,
        tls: ssl.SSLContext | None,
        beat: Callable[[], None],
    ) -> None:
        super().__init__()
        self._tls = tls
        self._clock = clock
        self._beat = beat
        self.settling = SETTLING * ttl
        if tick is not None:
            self.settling = min(self.settling, SETTLING_TICKS * tick)
        self._pace = PACE * ttl
        self._patience = max(LEAST_PATIENCE, PATIENCE * ttl)
        self._greeting = min(max(LEAST_GREETING, GREETING * ttl), MOST_GREETING)
        self._grain = GRAIN * self.settling
        self._heard: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)  # asked, answered
        self._greeted_from = -math.inf  # when the present connection's first word was sent
        self._silent = True  # whether that word is still to be sent
        self._talks = False  # whether the greetings are over
        self._owed = math.inf  # since when an answer is due
        self._proof = (math.inf, 0.0)  # the last one, and for what it was asked
        self._beat_at = -math.inf
        self._end = math.inf  # when to stop, whatever is still to be said
        self._corked: Corked | None = None  # the present connection, unless TLS packs it anyway
        self._files: list[Any] = []  # sockets, for a forked child to close
        self.waker: Waker | None = None

    # --- What is known. ---

    def answered(self, asked: float) -> float:
        """Take note of an answer, in kazoo's thread: it came on the connection that there is.

        Return since when the session's time runs, at least, if what was asked then was a write.
        """
        since, proof = self._proof
        if not since <= asked < since + self._grain:
            settled, proof = asked - self.settling, self._greeted_from
            for earlier, at in reversed(self._heard):
                if at <= settled:
                    proof = earlier
                    break
            self._proof = (asked, proof)
        if not self._heard or asked - self._heard[-1][0] >= self._grain:
            self._heard.append((asked, self._clock()))
        return proof

    @property
    def owed(self) -> bool:
        """Whether an answer is still due."""
        return self._owed < math.inf

    # --- Ending. ---

    def hang_up(self, within: float) -> None:
        """Let kazoo's thread end within that many seconds, heard or not."""
        self._end = min(self._end, self._clock() + within)

    def abandon(self) -> None:
        """In a forked child: close our copies of the parent's sockets, without a goodbye."""
        for file in self._files:
            file.close()
        self._files = []

    # --- What kazoo calls. ---

    def start(self) -> None:
        """Start no threads: answers and watches are passed on where they come from."""
        self._running = True

    def stop(self) -> None:
        """Stop nothing."""
        self._running = False

    def async_result(self) -> Answer:
        """Return what an answer is written into."""
        return Answer(self._clock(), self.answered)

    def dispatch_callback(self, callback: Any) -> None:
        """Call a watcher, at once."""
        callback.func(*callback.args)

    def spawn(self, func: Any, *args: Any, **options: Any) -> Any:
        """Start kazoo's one thread."""
        thread = super().spawn(func, *args, **options)
        thread.name = "holdfast-zookeeper"
        return thread

    def create_socket_pair(self) -> Any:
        """Return the two ends by which requests wake kazoo's thread."""
        reading, writing = super().create_socket_pair()
        self.waker = Waker(writing)
        self._files = [reading, writing]
        return reading, self.waker

    def create_connection(
        self, *, address: tuple[str, int], timeout: float, hostname: str = "", **_: object
    ) -> Any:
        """Connect, without waiting for a dead server as long as for a slow answer."""
        self._check_end()
        self._heard.clear()
        self._silent, self._talks, self._owed = True, False, math.inf
        self._proof = (math.inf, 0.0)
        connection = socket.create_connection(address, min(timeout, self._greeting))
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                name = hostname or address[0]  # kazoo 2.10 does not say
                connection = self._tls.wrap_socket(connection, server_hostname=name)
        except BaseException:
            connection.close()
            raise
        self._files = [*self._files[:2], connection]
        self._corked = Corked(connection) if self._tls is None else None
        return self._corked or connection

    def select(self, reading: Files, writing: Files, _: Files, timeout: float) -> _Ready:
        """Wait for sockets, as select() does."""
        if writing:
            self._note_send()
            if self._corked is not None:
                if self._corked.full:
                    self._corked.flush()
                return [], [*writing], []
            return [], self._wait(writing, select.POLLOUT, timeout), []
        if len(reading) == 1:  # a part of an answer, or of a greeting
            timeout = timeout if self._talks else min(timeout, self._greeting)
            return self._wait(reading, select.POLLIN, timeout), [], []
        return self._idle(reading, timeout), [], []

    # --- Inside. ---

    def _note_send(self) -> None:
        now = self._clock()
        if self._silent:
            self._silent, self._greeted_from = False, now
        self._owed = min(self._owed, now)

    def _wait(self, files: Files, event: int, timeout: float) -> list[Any]:
        """Wait for what comes at once, as a rule; nobody wakes us."""
        end = self._clock() + timeout
        while True:
            self._check_end()
            if self._corked is not None:
                self._corked.flush()
            left = end - self._clock()
            found = poll(files, event, min(left, SLICE))
            if found or left <= 0:
                return found

    def _idle(self, files: Files, timeout: float) -> list[Any]:
        """Wait for answers and requests; meanwhile keep the session alive."""
        connection, end = files[0], self._clock() + timeout
        self._talks = True
        if self._corked is not None and self._corked.waits:
            if files[1] in poll(files[1:], select.POLLIN, 0.0):
                return [files[1]]  # more is to go out with it
            self._corked.flush()
        while True:
            self._check_end()
            now = self._clock()
            if now >= self._owed + self._patience and not poll([connection], select.POLLIN, 0.0):
                raise OSError(errno.ETIMEDOUT, f"no answer for {now - self._owed:.3g} s")
            if now >= self._beat_at:
                self._beat_at = now + self._pace
                self._beat()
            if self._tls is not None and connection.pending():  # it has read more than was asked
                self._owed = math.inf
                return [connection]
            until = min(end, self._beat_at, self._owed + self._patience, self._end)
            found = poll(files, select.POLLIN, until - now)
            self._check_end()
            if connection in found:
                self._owed = math.inf
            if found or now >= end:
                return found

    def _check_end(self) -> None:
        if self._clock() >= self._end:
            raise OSError(errno.ECONNABORTED, "the session was given up")


def poll(files: Files, event: int, timeout: float) -> list[Any]:
    """Return those of the sockets that are ready, after `timeout` seconds at most."""
    poller = select.poll()
    for file in files:
        poller.register(file, event)
    ready = {number for number, _ in poller.poll(max(0, math.ceil(timeout * 1000)))}
    return [file for file in files if file.fileno() in ready] if ready else []
