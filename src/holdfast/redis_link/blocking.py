"""The link for threads: blocking sockets, one request at a time on each.

Rule 1: a connection that saw a time-out, an error or an interrupt is closed, never used again (S1).
Rule 2: nothing is sent twice.
Rule 3: where a request had no answer, all other connections are in doubt and left too: an idle one
        may be half open, and nothing would ever be heard on it.
Rule 4: one on which an answer is late is used all the same: the next answer comes behind it.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable

from .._concurrency import Mutex, Reader
from ..clocks import Clock
from ..errors import EngineUnavailable
from .connection import UNASKED, Connection, drive
from .round import Round
from .settings import Settings
from .wire import CLOSED, Follow, Greeting, Reply, check, forbidden, pack, silent, unreachable

IDLE_TRUST = 0.1  # seconds after which an idle connection is looked at before it is used


class Link:
    """Connections to one server: as many as threads talk to it at the same time."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self.greeting = Greeting()
        self.heard = -math.inf  # when the last answer came in a round
        self.given_up = -math.inf  # when an answer was last found to be overdue
        self.latency = math.inf  # seconds that the last answer took, in a round
        self.on_greeting: Callable[[Greeting, float, float], None] = lambda *_: None
        self._idle: list[Connection] = []
        self.mail: Connection | None = None
        self._mutex = Mutex()
        self._closed = False

    def call(self, request: bytes, timeout: float, follow: Follow | None = None) -> Reply:
        """Send a request and return its reply, which may be an error (a value, not raised).

        What `follow` makes of the reply goes out on the same connection; both are returned then.
        """
        connection: Connection | None = None
        try:
            connection = self._idle.pop()
            if connection.awaited or time.monotonic() > connection.trusted_until:
                self._idle.append(connection)
                connection = self._caught_up()
        except IndexError:
            pass
        if connection is None:
            if follow is None:
                return self._first_call(request, timeout)
            self._first_call(pack(("PING",)), timeout)
            return self.call(request, timeout, follow)
        try:
            reply = connection.converse(request, timeout)
            if follow is not None:
                more = follow(reply)
                reply = (reply, connection.converse(more, timeout) if more else None)
        except (BlockingIOError, TimeoutError):
            connection.close()
            self.leave()
            raise silent(self.settings, f"within {timeout:.3g} s") from None
        except OSError as error:
            connection.close()
            self.leave()
            raise silent(self.settings, str(error)) from error
        except BaseException:
            connection.close()
            raise
        connection.trusted_until = time.monotonic() + IDLE_TRUST
        self._idle.append(connection)
        if self._closed:
            self._drop_idle()
        return reply

    def take(self, now: float) -> Connection | None:
        """Return a connection that is ready, if there is one; answers may be late on it."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if now < connection.trusted_until or self._is_fine(connection, connection.catch_up):
                return connection
        return None

    def _is_fine(self, connection: Connection, look: Callable[[], None]) -> bool:
        """Say whether a connection is still to be used after a look at it."""
        asked = connection.awaited[-1][2] if connection.awaited else -math.inf
        look()
        if connection.broken and asked > -math.inf:
            self.given_up = time.monotonic()
            if self.heard < asked:
                self.leave()
        return not connection.broken

    def _caught_up(self) -> Connection | None:
        """Return a connection that is ready and owes nothing, if there is one."""
        connection = self.take(math.inf)
        if connection is None or not connection.awaited:
            return connection
        self.keep(connection, time.monotonic())
        return None

    def keep(self, connection: Connection, now: float) -> None:
        """Keep a connection that may be used again."""
        connection.trusted_until = now + IDLE_TRUST
        if connection.awaited:
            connection.trusted_until = min(connection.trusted_until, connection.awaited[0][3])
        self.latency = connection.latency
        self._idle.append(connection)
        if self._closed:
            self._drop_idle()

    def hear_out(self) -> None:
        """Wait for what is late on connections that nobody uses, as long as anybody would."""
        idle = [self._idle.pop() for _ in range(len(self._idle))]
        for connection in idle:
            if self._is_fine(connection, connection.hear_out):
                self.keep(connection, time.monotonic())

    def make(self) -> Connection:
        """Begin a new connection."""
        try:
            return Connection(self.settings, self._clock)
        except EngineUnavailable:  # by Sentinel's answer
            raise
        except OSError as error:
            raise unreachable(self.settings, error) from error

    def greeted(self, connection: Connection) -> None:
        """Take note of what the server said on a new connection."""
        connection.announced = True
        if connection.greeting is not None:
            self.greeting = connection.greeting
            self.on_greeting(connection.greeting, connection.greeted_from, self._clock())

    def _first_call(self, request: bytes, timeout: float) -> Reply:
        connection, reply = self._ask_first(request, timeout)
        self.keep(connection, time.monotonic())
        return reply

    def _ask_first(
        self, request: bytes, timeout: float, listens: bool = False
    ) -> tuple[Connection, Reply]:
        """Make a connection, and return it with the reply to what was asked first."""
        connection, round = self.make(), Round(1)
        connection.listens = listens
        try:
            started = time.monotonic()
            connection.ask(request, round, 0, started, timeout)
            drive([connection], round, started + timeout)
            if not round.decided:
                connection.give_up()
            (reply,) = round.answers
            if connection.broken:  # perhaps only after the answer
                raise reply if isinstance(reply, Exception) else silent(self.settings, UNASKED)
            self.greeted(connection)
        except BaseException:
            connection.close()
            raise
        return connection, reply

    # --- Hearing what nobody asked for. ---

    @property
    def listening(self) -> bool:
        """Whether messages on our channel reach us."""
        return self.mail is not None

    def listen(
        self,
        reader: Reader,
        channel: bytes,
        hear: Callable[[bytes], None],
        lost: Callable[[], None],
        timeout: float,
    ) -> bool:
        """Subscribe; `hear` gets every message, `lost` is told when no more can come.

        False = the user has no right to.
        """
        end = time.monotonic() + timeout
        if not self._mutex.acquire(timeout=max(0.0, timeout)):
            return True  # another thread is trying
        try:
            if self.mail is not None or self._closed:
                return True
            subscribe = pack((b"SUBSCRIBE", channel))
            connection, reply = self._ask_first(subscribe, end - time.monotonic(), listens=True)
            if forbidden(reply):
                connection.close()
                return False
            try:
                check(self.settings, reply)
            except BaseException:
                connection.close()
                raise
            connection.socket.setblocking(False)
            self.mail = connection
        finally:
            self._mutex.release()

        def read() -> None:
            try:
                connection.fetch()
                while (message := connection.reader.gets()) is not False:
                    if isinstance(message, list) and len(message) == 3:
                        hear(message[2])
            except Exception:
                reader.remove(connection.socket.fileno())
                self._hang_up(connection)
                lost()

        read()  # what came together with the answer
        if self.mail is connection:
            reader.add(connection.socket.fileno(), read)
        return True

    def leave(self) -> None:
        """Trust no connection any more: the server, or the way to it, is not what it was.

        One on which answers are late has until these are due: what was asked may still arrive.
        """
        for connection in [self._idle.pop() for _ in range(len(self._idle))]:
            if connection.awaited:
                self._idle.append(connection)
            else:
                connection.close()
        mail = self.mail
        if mail is not None:
            try:
                mail.socket.shutdown(socket.SHUT_RDWR)  # the reader sees its end, and says so
            except OSError:
                pass

    def _hang_up(self, connection: Connection) -> None:
        with self._mutex:
            if self.mail is connection:
                self.mail = None
        connection.close()

    # --- The end. ---

    def close(self) -> None:
        """Close all connections, after what is late; the reader must be closed before."""
        self._closed = True
        # What was asked last may be a release: a socket that is closed before its answer is read
        # may take the question with it.
        self.hear_out()
        if self.mail is not None:
            self._hang_up(self.mail)

    def abandon(self) -> None:
        """In a forked child: close our copies of the parent's sockets (TLS too: no goodbye)."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        if self.mail is not None:
            self.mail.close()
            self.mail = None
        self._mutex = Mutex()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().break_off(CLOSED)
