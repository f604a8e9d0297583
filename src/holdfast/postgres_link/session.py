"""One connection to PostgreSQL: what is said on it, as steps; who drives them does the waiting.

Rule 1: nothing here blocks. A step says whether it waits to read or to write, and goes on when the
        socket is ready.
Rule 2: one statement at a time, each a transaction of its own. Nothing is sent twice.
Rule 3: it never closes itself: whoever sees it fail does.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from psycopg import Error, OperationalError
from psycopg.conninfo import make_conninfo
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, PGconn, PollingStatus
from psycopg.pq.abc import PGresult

from .._concurrency import Mutex

READ, WRITE = select.POLLIN, select.POLLOUT

T = TypeVar("T")
Steps = Generator[int, None, T]  # yields what it waits for
Word = bytes | None
Rows = list[list[bytes | None]]

_GOOD = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY)


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One statement with places for words, and the name it is prepared under."""

    name: bytes
    text: bytes


class Notification(NamedTuple):
    """What somebody has told a channel."""

    channel: bytes
    message: bytes


class Refusal(Exception):
    """The server's answer to a statement is an error: it has done nothing."""

    def __init__(self, state: str, text: str) -> None:
        super().__init__(text)
        self.state = state  # SQLSTATE


class Session:
    """A connection that is being made, or is there."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self.pid = 0  # of the server's process, as a pooler cannot know it
        self.used = 0.0
        self.awaits = 0  # what the steps wait for; whoever drives them on waits for that first
        try:
            self.pgconn = PGconn.connect_start(make_conninfo(**parameters).encode())
        except Error as error:  # it does not even try
            raise ConnectionError(_one_line(str(error))) from error
        self._seen: set[Statement] = set()
        self._prepared: set[Statement] = set()
        self._poll: select.poll | None = None
        self._ear = -1
        self._mutex = Mutex()  # a descriptor that is closed may be another's the next moment

    @property
    def file(self) -> int:
        """The descriptor to wait for; another one as long as addresses are tried."""
        try:
            return self.pgconn.socket
        except OperationalError as error:
            raise ConnectionError(_one_line(str(error))) from error

    # --- Steps. ---

    def opening(self) -> Steps[None]:
        """Connect and log in."""
        pgconn = self.pgconn
        while True:
            if pgconn.status == ConnStatus.BAD:
                raise ConnectionError(self._why())
            status = pgconn.connect_poll()
            if status == PollingStatus.OK:
                break
            if status == PollingStatus.FAILED:
                raise ConnectionError(self._why())
            yield READ if status == PollingStatus.READING else WRITE
        pgconn.nonblocking = 1

    def asking(self, statement: Statement, words: Sequence[Word], prepare: bool) -> Steps[Rows]:
        """Run a statement; it is prepared when it is used for the second time."""
        try:
            pgconn = self.pgconn
            if prepare and statement in self._seen:
                if statement not in self._prepared:
                    pgconn.send_prepare(statement.name, statement.text)
                    yield from self._results()
                    self._prepared.add(statement)
                pgconn.send_query_prepared(statement.name, words)
            else:
                self._seen.add(statement)
                pgconn.send_query_params(statement.text, words)
            return (yield from self._results())
        except OperationalError as error:
            raise ConnectionError(_one_line(str(error))) from error

    def running(self, script: str) -> Steps[Rows]:
        """Run several statements, as one transaction; return what the last one gives."""
        try:
            self.pgconn.send_query(script.encode())
            return (yield from self._results())
        except OperationalError as error:
            raise ConnectionError(_one_line(str(error))) from error

    def _results(self) -> Steps[Rows]:
        """Send what is to be sent, and wait until the server is ready for more."""
        pgconn = self.pgconn
        while pgconn.flush():
            yield WRITE
        last: PGresult | None = None
        refusal: Refusal | None = None
        while True:
            while pgconn.is_busy():
                yield READ
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                break
            if result.status in _GOOD:
                last = result
            elif refusal is None:
                refusal = self._refusal(result)
        if refusal is not None:
            raise refusal
        if last is None:
            raise ConnectionError("the connection was closed")
        columns = range(last.nfields)
        return [[last.get_value(row, column) for column in columns] for row in range(last.ntuples)]

    def _refusal(self, result: PGresult) -> Refusal:
        state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
        text = result.error_field(DiagnosticField.MESSAGE_PRIMARY)
        if not state:  # libpq's own: the connection is gone
            raise ConnectionError(self._why())
        return Refusal(state, (text or b"").decode(errors="replace"))

    def _why(self) -> str:
        text = self.pgconn.get_error_message("utf-8")
        return _one_line(text) or "the connection was closed"

    # --- Messages. ---

    @property
    def ear(self) -> int:
        """A descriptor to watch for messages, ours: libpq closes its own as soon as it fails."""
        if self._ear < 0:
            self._ear = os.dup(self.file)
        return self._ear

    def messages(self) -> list[Notification]:
        """Return what has arrived on channels; the socket is readable."""
        try:
            self.pgconn.consume_input()
        except OperationalError as error:
            raise ConnectionError(_one_line(str(error))) from error
        found: list[Notification] = []
        while (one := self.pgconn.notifies()) is not None:
            found.append(Notification(bytes(one.relname), bytes(one.extra)))
        return found

    # --- The socket. ---

    def ready(self, want: int, timeout: float) -> bool:
        """Wait until the socket is ready; only threads do that."""
        poll = self._poll
        if want != READ or poll is None:
            poll = select.poll()
            poll.register(self.file, want)
            if want == READ and self.pgconn.status == ConnStatus.OK:
                self._poll = poll
        return bool(poll.poll(max(0, int(timeout * 1000 + 0.999))))

    def stale(self) -> bool:
        """Say whether an idle connection has something to read: its end, as a rule."""
        return self.ready(READ, 0.0)

    def shut(self) -> None:
        """End one that is listened on: whoever watches it sees the end."""
        with self._mutex:
            if self._ear < 0:
                return
            try:
                with socket.socket(fileno=os.dup(self._ear)) as end:
                    end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        """Close it."""
        with self._mutex:
            self.pgconn.finish()
            if self._ear >= 0:
                os.close(self._ear)
                self._ear = -1

    def abandon(self) -> None:
        """In a forked child: let go of the socket without a goodbye, which would end the parent's.

        libpq's own object is left alone: psycopg does not finish what another process made.
        """
        files = [self._ear] if self._ear >= 0 else []
        try:
            files.append(self.file)
        except ConnectionError:
            pass
        nothing = os.open(os.devnull, os.O_RDWR)
        for file in files:
            os.dup2(nothing, file)  # closing it would tell an epoll that we share
        os.close(nothing)


def _one_line(text: str) -> str:
    return " ".join(text.split())
