"""The link for threads: blocking sockets, one request at a time on each.

Rule 1: a connection that saw a time-out, an error or an interrupt is closed, never used again (S1).
Rule 2: nothing is sent twice.
Rule 3: where a request had no answer, all other connections are in doubt and left too: an idle one
        may be half open, and nothing would ever be heard on it.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable

from .._concurrency import Mutex, Reader
from ..clocks import Clock
from ..errors import EngineUnavailable
from .connection import Connection, drive
from .settings import Settings
from .wire import Follow, Greeting, Reply, check, forbidden, pack, silent, unreachable

IDLE_TRUST = 0.1  # seconds after which an idle connection is looked at before it is used


class Link:
    """Connections to one server: as many as threads talk to it at the same time."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self.greeting = Greeting()
        self.heard = -math.inf  # when the last answer came that was asked for so
        self.latency = math.inf  # seconds that the last answer took, asked together with others
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
            if time.monotonic() - connection.used > IDLE_TRUST:
                self._idle.append(connection)
                connection = self.take()
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
        connection.used = time.monotonic()
        self._idle.append(connection)
        if self._closed:
            self._drop_idle()
        return reply

    def take(self, now: float | None = None) -> Connection | None:
        """Return a connection that is ready, if there is one."""
        now = time.monotonic() if now is None else now
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if now - connection.used < IDLE_TRUST or not connection.stale():
                return connection
            connection.close()
        return None

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose last request was answered now."""
        connection.used = time.monotonic()
        self.keep(connection)

    def keep(self, connection: Connection) -> None:
        """Keep a connection that may be used again."""
        self.heard = connection.used
        self._idle.append(connection)
        if self._closed:
            self._drop_idle()

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
        connection = self.make()
        try:
            started = time.monotonic()
            connection.request = request
            drive([connection], started + timeout)
            reply = connection.reply
            if connection.greeting is None:
                if isinstance(reply, Exception) and not isinstance(reply, OSError):
                    raise reply
                why = reply if isinstance(reply, OSError) else f"no answer within {timeout:.3g} s"
                raise unreachable(self.settings, why)
            if reply is False or isinstance(reply, OSError):
                why = f"within {timeout:.3g} s" if reply is False else str(reply)
                raise silent(self.settings, why)
            self.greeted(connection)
        except BaseException:
            connection.close()
            raise
        self.give_back(connection)
        return reply

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
        deadline = time.monotonic() + timeout
        if not self._mutex.acquire(timeout=max(0.0, timeout)):
            return True  # another thread is trying
        try:
            if self.mail is not None or self._closed:
                return True
            connection = self.make()
            try:
                connection.request = pack((b"SUBSCRIBE", channel))
                drive([connection], deadline)
                reply = connection.reply
                if reply is False or isinstance(reply, OSError):
                    raise unreachable(self.settings, reply or "no answer to SUBSCRIBE")
                if not forbidden(reply):
                    check(self.settings, reply)
                self.greeted(connection)
            except BaseException:
                connection.close()
                raise
            if forbidden(reply):
                connection.close()
                return False
            connection.socket.setblocking(False)
            self.mail = connection
        finally:
            self._mutex.release()

        def read() -> None:
            try:
                connection.reply = False
                connection.receive()
                while connection.reply is not False:
                    if isinstance(connection.reply, list) and len(connection.reply) == 3:
                        hear(connection.reply[2])
                    connection.reply = connection.reader.gets()
            except BlockingIOError:
                pass
            except Exception:
                reader.remove(connection.socket.fileno())
                self._hang_up(connection)
                lost()

        reader.add(connection.socket.fileno(), read)
        return True

    def leave(self) -> None:
        """Trust no connection any more: the server, or the way to it, is not what it was."""
        self._drop_idle()
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
        """Close all connections; the reader must be closed before."""
        self._closed = True
        self._drop_idle()
        if self.mail is not None:
            self._hang_up(self.mail)

    def abandon(self) -> None:
        """In a forked child: close our copies of the parent's sockets (TLS too: no goodbye)."""
        self._drop_idle()
        if self.mail is not None:
            self.mail.close()
            self.mail = None
        self._mutex = Mutex()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
