"""(Generated from _async/postgres_door.py by tools/unasync.py: do not edit.) The way in to PostgreSQL: connections to the primary, behind which the tables are there.

Rule 1: of several hosts, and several addresses of one, each gets its share of the time. The host
        that was good the last time is tried first.
Rule 2: each connection is asked who answers on it. If that is not who greeted us, a pooler stands
        between: then nothing may be left in a session, no prepared statements and no messages.
Rule 3 (S5): tables are made on first use, unless create=False; those of another version are left
        alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..clocks import Clock
from ..errors import EngineUnavailable
from ..postgres_link import (
    Refusal,
    Session,
    Settings,
    addresses,
    drive,
    resolve,
    outdated,
    refused,
    unreachable,
)
from ..postgres_record import VERSION, Statements, creation, quoted, whole


class Door:
    """Makes connections, and knows all that are open."""

    def __init__(
        self, settings: Settings, clock: Clock, statements: Statements, create: bool
    ) -> None:
        self.settings = settings
        self.pooled = False
        self.on_time: Callable[[float, int], None] = lambda sent, micros: None
        self.on_pooler: Callable[[], None] = lambda: None
        self._clock = clock
        self._statements = statements
        self._create = create
        self._bare = False  # without options: PgBouncer takes none
        self._first = 0  # the host that was good the last time
        self._sessions: set[Session] = set()

    def open(self, timeout: float) -> Session:
        """Return a new connection to the primary, whose tables are there."""
        end = self._clock() + timeout
        problem: BaseException = TimeoutError(f"no answer within {timeout:.3g} s")
        hosts = list(enumerate(addresses(self.settings.parameters)))
        hosts = hosts[self._first :] + hosts[: self._first]
        for number, (at, where) in enumerate(hosts):
            try:
                found = resolve(where)
            except OSError as error:
                problem = error
                continue
            for count, parameters in enumerate(found):
                attempts = len(hosts) - number - 1 + len(found) - count
                share = max(0.001, (end - self._clock()) / attempts)
                try:
                    session = self._connect(parameters, share)
                except (OSError, TimeoutError) as error:
                    if isinstance(error, EngineUnavailable):
                        raise
                    problem = error
                    continue
                self._first = at
                self._greet(session, max(0.001, end - self._clock()))
                return session
        raise unreachable(self.settings, problem) from None

    def _connect(self, parameters: Mapping[str, str], timeout: float) -> Session:
        if self._bare:
            parameters = {name: parameters[name] for name in parameters if name != "options"}
        session = Session(parameters)
        self._sessions.add(session)
        try:
            drive(session, session.opening(), timeout)
        except ConnectionError as error:
            self.close(session)
            if not self._bare and "unsupported startup parameter" in str(error):
                self._bare = True
                return self._connect(parameters, timeout)
            raise
        except BaseException:
            self.close(session)
            raise
        return session

    def _greet(self, session: Session, timeout: float) -> None:
        """Ask who is there; make the tables if they are missing."""
        started = self._clock()
        table = f"{quoted(self._statements.schema)}.record".encode()
        try:
            sent = self._clock()
            steps = session.asking(self._statements.greet, [table], False)
            ((pid, micros, recovery, version),) = drive(session, steps, timeout)
            self.on_time(sent, whole(micros))
            if recovery == b"t":
                raise unreachable(self.settings, "it is a standby")
            self._know(session, whole(pid))
            if version is None and self._create:
                left = timeout - (self._clock() - started)
                drive(session, session.running(creation(self._statements.schema)), left)
            elif version is not None and version.decode() != VERSION:
                raise outdated(self.settings, self._statements.schema, version.decode(), VERSION)
        except Refusal as refusal:
            self.close(session)
            raise refused(self.settings, refusal) from None
        except (ConnectionError, TimeoutError) as error:
            self.close(session)
            raise unreachable(self.settings, error) from None
        except BaseException:
            self.close(session)
            raise

    def _know(self, session: Session, pid: int) -> None:
        """Compare who greeted us with who answers."""
        session.pid = pid
        if pid == session.pgconn.backend_pid or self.pooled:
            return
        self.pooled = True
        self.on_pooler()

    def close(self, session: Session) -> None:
        """Close a connection."""
        self._sessions.discard(session)
        session.close()

    def abandon(self) -> None:
        """In a forked child: let go of the parent's connections."""
        for session in self._sessions:
            session.abandon()
