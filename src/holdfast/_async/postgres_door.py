"""The way in to PostgreSQL: connections to the primary, behind which the tables are there.

Rule 1: of several hosts, and several addresses of one, each gets its share of the time. The host
        that was good the last time is tried first.
Rule 2: each connection is asked who answers on it. If that is not who greeted us, a pooler stands
        between: then nothing may be left in a session, no prepared statements and no messages.
Rule 3 (S5): tables are made on first use, unless create=False; those of another version are left
        alone.
Rule 4: a connection that is not ready when a call's time is over is not given up: the next call
        goes on with it. Otherwise a way slower than the calls' time-outs would never be made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..clocks import Clock
from ..errors import EngineUnavailable
from ..postgres_link import (
    Refusal,
    Session,
    Settings,
    Steps,
    addresses,
    adrive,
    aresolve,
    outdated,
    refused,
    unreachable,
)
from ..postgres_record import VERSION, Statements, creation, quoted, whole

STALLED = 2.0  # seconds without a step after which a connection is made anew: SYNs come ever rarer

Begun = tuple[Session, Steps[None]]


class AsyncDoor:
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
        self._begun: dict[tuple[str, ...], list[Begun]] = {}  # by address: not ready yet
        self._closed = False

    async def open(self, timeout: float) -> Session:
        """Return a new connection to the primary, whose tables are there."""
        end = self._clock() + timeout
        problem: BaseException = TimeoutError(f"no answer within {timeout:.3g} s")
        hosts = list(enumerate(addresses(self.settings.parameters)))
        hosts = hosts[self._first :] + hosts[: self._first]
        for number, (at, where) in enumerate(hosts):
            try:
                found = await aresolve(where)
            except OSError as error:
                problem = error
                continue
            for count, parameters in enumerate(found):
                attempts = len(hosts) - number - 1 + len(found) - count
                share = max(0.001, (end - self._clock()) / attempts)
                try:
                    session = await self._enter(parameters, share)
                except Refusal as refusal:
                    raise refused(self.settings, refusal) from None
                except (OSError, TimeoutError) as error:
                    if isinstance(error, EngineUnavailable):
                        raise
                    problem = error
                    continue
                self._first = at
                return session
        raise unreachable(self.settings, problem) from None

    async def _enter(self, parameters: Mapping[str, str], timeout: float) -> Session:
        """Connect, or go on where the last call ran out of time (rule 4)."""
        end = self._clock() + timeout
        key = tuple(parameters.get(name, "") for name in ("host", "hostaddr", "port"))
        begun, bare = self._left_off(key), self._bare
        session, steps = begun or self._begin(parameters)
        try:
            await adrive(session, steps, timeout)
        except TimeoutError:
            self._begun.setdefault(key, []).append((session, steps))
            if self._closed:
                self.shut()
            raise
        except ConnectionError as error:
            self.close(session)
            if isinstance(error, EngineUnavailable):
                raise
            if not bare and "unsupported startup parameter" in str(error):
                self._bare = True  # others who asked at the same moment hear so too
            elif begun is None:
                raise
            return await self._enter(parameters, max(0.001, end - self._clock()))
        except BaseException:
            self.close(session)
            raise
        return session

    def _left_off(self, key: tuple[str, ...]) -> Begun | None:
        """Return a connection that was begun, if one is there that moves."""
        begun = self._begun.get(key)
        while begun:
            try:
                session, steps = begun.pop()
            except IndexError:  # another thread was quicker
                break
            if self._clock() - session.used < STALLED:
                return session, steps
            self.close(session)
        return None

    def _begin(self, parameters: Mapping[str, str]) -> Begun:
        if self._bare:
            parameters = {name: parameters[name] for name in parameters if name != "options"}
        session = Session(parameters)
        self._sessions.add(session)
        return session, self._entering(session)

    def _entering(self, session: Session) -> Steps[None]:
        """Note when a step was made; one that is over its time goes on from there."""
        for want in self._whole_way(session):
            session.used = self._clock()
            yield want

    def _whole_way(self, session: Session) -> Steps[None]:
        """Log in, ask who is there, and make the tables if they are missing."""
        yield from session.opening()
        table = f"{quoted(self._statements.schema)}.record".encode()
        sent = self._clock()
        rows = yield from session.asking(self._statements.greet, [table], False)
        ((pid, micros, recovery, version),) = rows
        self.on_time(sent, whole(micros))
        if recovery == b"t":
            raise unreachable(self.settings, "it is a standby")
        self._know(session, whole(pid))
        if version is None and self._create:
            yield from session.running(creation(self._statements.schema))
        elif version is not None and version.decode() != VERSION:
            raise outdated(self.settings, self._statements.schema, version.decode(), VERSION)

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

    def shut(self) -> None:
        """Let nothing go on that was begun."""
        self._closed = True
        for begun in list(self._begun.values()):
            while begun:
                try:
                    self.close(begun.pop()[0])
                except IndexError:  # another thread was quicker
                    break

    def abandon(self) -> None:
        """In a forked child: let go of the parent's connections."""
        for session in self._sessions:
            session.abandon()
