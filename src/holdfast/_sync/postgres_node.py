"""(Generated from _async/postgres_node.py by tools/unasync.py: do not edit.) One PostgreSQL server as an engine sees it: its connections, tables and clock, messages from it.

Rule 1: a verb is one statement on one connection. There are a few of those, and one more that only
        renewals use: a statement that waits for a locked row must not cost anybody a lease.
Rule 2 (S1): a connection that saw a time-out, an error of its own or a cancel is closed. Where a
        statement had no answer, all others are in doubt and left too.
Rule 3: messages are heard on one connection per client, which says that we are alive: it holds
        our number locked. While there is none, timers do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from secrets import randbits
from time import time
from typing import NamedTuple

from .. import events
from .._concurrency import Reader
from ..clocks import Clock
from ..errors import EngineUnavailable, OutcomeUnknown
from ..postgres_link import (
    Turns,
    Refusal,
    Rows,
    Session,
    Settings,
    Statement,
    Word,
    drive,
    refused,
    silent,
    suspect,
    unreachable,
)
from ..postgres_record import NOBODY, statements
from ..server_clock import ServerClock
from .engine import Report
from .postgres_door import Door

IDLE_TRUST = 0.1  # seconds after which an idle connection is looked at before it is used
LISTEN_AGAIN = 1.0  # seconds between attempts to hear messages
SIGN_AGAIN = 1.0  # seconds between signs of life that are reported
POOLER = "a pooler stands between: sessions are not ours, so no message can reach us"


class Answer(NamedTuple):
    """What a statement gave."""

    sent: float  # to wait for a connection takes nothing away from a lease (S8)
    rows: Rows


class Lane:
    """Connections that take turns: at most so many at once."""

    def __init__(self, most: int, close: Callable[[Session], None]) -> None:
        self.turns = Turns(most)
        self.idle: list[Session] = []
        self._close = close

    def take(self, now: float) -> Session | None:
        """Return a connection that is there and sound, if there is one."""
        while self.idle:
            try:
                session = self.idle.pop()
            except IndexError:  # another thread was quicker
                break
            if now - session.used < IDLE_TRUST or not session.stale():
                return session
            self._close(session)
        return None

    def drop(self) -> None:
        """Close what is idle."""
        while self.idle:
            try:
                self._close(self.idle.pop())
            except IndexError:
                break


class PostgresNode:
    """A server, and what is known of it."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        *,
        schema: str,
        create: bool,
        listen: str,
        connections: int,
    ) -> None:
        self.settings = settings
        self.location = settings.location
        self.statements = statements(schema)
        self.clock = ServerClock()
        self.report: Report | None = None
        self.client = NOBODY  # our number, while we listen
        self.mail: Session | None = None
        self._clock = clock
        self._listen = listen
        self._door = Door(settings, clock, self.statements, create)
        self._door.on_time, self._door.on_pooler = self.observe, self._pooled
        self._common = Lane(connections, self._door.close)
        self._urgent = Lane(1, self._door.close)
        self._subscribing = Turns(1)
        self._listen_at = self._sign_at = -math.inf
        self._closed = False

    # --- Asking. ---

    def ask(
        self, statement: Statement, words: Sequence[Word], timeout: float, urgent: bool = False
    ) -> Answer:
        """Run a statement; return its rows, and when it was sent."""
        try:
            return self._ask(statement, words, timeout, urgent)
        except (EngineUnavailable, OutcomeUnknown) as error:
            if self.report is not None:
                self.report(events.NodeFailed, node=self.location, error=str(error))
            raise

    def _ask(
        self, statement: Statement, words: Sequence[Word], timeout: float, urgent: bool
    ) -> Answer:
        lane = self._urgent if urgent else self._common
        started = self._clock()
        if not lane.turns.take(timeout):
            raise unreachable(self.settings, f"no connection was free within {timeout:.3g} s")
        try:
            session = lane.take(started)
            if session is None and urgent:  # one that is idle keeps nobody waiting
                session = self._common.take(started)
            if session is None:
                session = self._door.open(timeout - (self._clock() - started))
            sent = self._clock()
            left = max(0.001, timeout - (sent - started))
            try:
                steps = session.asking(statement, words, not self._door.pooled)
                rows = drive(session, steps, left)
            except Refusal as refusal:
                if suspect(refusal):
                    self._door.close(session)
                    self.leave()
                else:
                    self._keep(lane, session)
                raise refused(self.settings, refusal) from None
            except (TimeoutError, ConnectionError) as error:
                self._door.close(session)
                self.leave()
                raise silent(self.settings, error) from None
            except BaseException:  # whoever asked was cancelled: the others may go on
                self._door.close(session)
                raise
            self._keep(lane, session)
        finally:
            lane.turns.give()
        return Answer(sent, rows)

    def _keep(self, lane: Lane, session: Session) -> None:
        session.used = self._clock()
        lane.idle.append(session)
        if self._closed:
            lane.drop()

    def look(self, statement: Statement, words: Sequence[Word], timeout: float) -> Rows:
        """Run a statement that changes nothing: without an answer the server is unavailable."""
        try:
            return (self.ask(statement, words, timeout)).rows
        except OutcomeUnknown as error:
            raise EngineUnavailable(str(error), engine=error.engine) from error

    def observe(self, sent: float, theirs: int) -> None:
        """Take note of the server's time in an answer; a clock that was set is an event.

        That the server lives is one too, now and then.
        """
        received = self._clock()
        step = self.clock.observe(sent, received, theirs)
        if self.report is None:
            return
        if step:
            self.report(events.ClockStep, node=self.location, step=step)
        if received >= self._sign_at:
            self._sign_at = received + SIGN_AGAIN
            self.report(
                events.NodeAnswered,
                node=self.location,
                latency=received - sent,
                offset=self.clock.middle(received) - time(),
                uncertainty=self.clock.uncertainty,
            )

    # --- Connections. ---

    @property
    def pooled(self) -> bool:
        """Whether a pooler stands between, as far as we know."""
        return self._door.pooled

    def _pooled(self) -> None:
        if self._listen == "auto":
            self._listen = "no"
            if self.report is not None:
                self.report(events.Deaf, node=self.location, why=POOLER)

    def leave(self) -> None:
        """Trust no connection any more: the server, or the way to it, is not what it was."""
        self._drop_idle()
        mail = self.mail
        if mail is not None:
            mail.shut()  # the reader sees its end, and says so

    def _drop_idle(self) -> None:
        for lane in (self._common, self._urgent):
            lane.drop()

    # --- Messages. ---

    @property
    def may_listen(self) -> bool:
        """Whether messages could reach us, as far as we know."""
        return self._listen != "no"

    @property
    def listening(self) -> bool:
        """Whether messages reach us."""
        return self.mail is not None

    def listen(
        self,
        reader: Reader,
        hear: Callable[[bytes], None],
        deaf: Callable[[], None],
        timeout: float,
    ) -> None:
        """Listen to a channel of our own; where that fails, not again for a while."""
        if not self.may_listen or self._clock() < self._listen_at:
            return
        started = self._clock()
        if not self._subscribing.take(timeout):
            return  # another one is trying
        try:
            if self.mail is None and not self._closed:
                self._subscribe(reader, hear, deaf, timeout - (self._clock() - started))
        except (EngineUnavailable, OutcomeUnknown):
            self._listen_at = self._clock() + LISTEN_AGAIN
        finally:
            self._subscribing.give()

    def _subscribe(
        self,
        reader: Reader,
        hear: Callable[[bytes], None],
        deaf: Callable[[], None],
        timeout: float,
    ) -> None:
        started = self._clock()
        session = self._door.open(timeout)
        if not self.may_listen:  # as we know now
            self._common.idle.append(session)
            return
        # A number for this connection only: the last one may still be held by a server that has
        # not noticed that its client has gone.
        client = randbits(62) + 1
        script = f'SELECT pg_advisory_lock({client}); LISTEN "holdfast:{client:016x}"'
        try:
            left = max(0.001, timeout - (self._clock() - started))
            drive(session, session.running(script), left)
            ear = session.ear
        except Refusal as refusal:
            self._door.close(session)
            raise refused(self.settings, refusal) from None
        except (ConnectionError, TimeoutError) as error:
            self._door.close(session)
            raise unreachable(self.settings, error) from None
        except BaseException:
            self._door.close(session)
            raise

        def read() -> None:
            try:
                for one in session.messages():
                    hear(one.message)
            except ConnectionError:
                reader.remove(ear)
                if self.mail is session:
                    self.mail, self.client = None, NOBODY
                self._door.close(session)
                deaf()

        if self._closed:
            self._door.close(session)
            return
        self.mail, self.client = session, client
        reader.add(ear, read)

    # --- The end. ---

    def close(self) -> None:
        """Close all connections; the reader must be closed before."""
        self._closed = True
        self._door.shut()
        self._drop_idle()
        if self.mail is not None:
            self._door.close(self.mail)
            self.mail, self.client = None, NOBODY

    def abandon(self) -> None:
        """In a forked child: nothing of this is ours."""
        self._door.abandon()
