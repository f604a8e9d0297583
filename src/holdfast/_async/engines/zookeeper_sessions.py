"""The sessions of one client: one for each TTL in use, and one to look with."""

from __future__ import annotations

from ..._concurrency import Mutex
from ...clocks import Clock
from ...errors import NotSupported
from ...zookeeper_link import Settings
from ..zookeeper_session import AsyncOwner, AsyncSession

LOOKING = 30.0  # seconds: the session of a client that only looks, so far; the usual TTL
SPARED = 8  # sessions that are kept though nobody uses them
END_MOST = 1.0  # seconds that closing waits for goodbyes


class AsyncSessions:
    """Finds the session for a TTL, and ends them all."""

    def __init__(
        self, settings: Settings, tick: float | None, clock: Clock, owner: AsyncOwner
    ) -> None:
        self._settings = settings
        self._tick = tick
        self._clock = clock
        self._owner = owner
        self._mutex = Mutex()
        self._by_ttl: dict[float, AsyncSession] = {}

    def find(self, ttl: float) -> AsyncSession | None:
        """Return the session for a TTL if there is one."""
        return self._by_ttl.get(ttl)

    async def take(self, ttl: float, timeout: float, name: str) -> AsyncSession:
        """Return the session for a TTL, connected; refuse a TTL that the servers do not keep."""
        session = self._by_ttl.get(ttl)
        if session is None or session.over:
            session = self._open(ttl)
        if not session.live:
            await session.ready(timeout)
        session.used = self._clock()
        if session.negotiated != session.asked:
            raise self._refused(ttl, session.negotiated, name)
        return session

    def some(self) -> AsyncSession:
        """Return a session, whatever its TTL: one that has a connection, if there is one."""
        sessions = [one for one in list(self._by_ttl.values()) if not one.over]
        return next((one for one in sessions if one.live), None) or (
            sessions[0] if sessions else self._open(LOOKING)
        )

    async def any(self, timeout: float) -> AsyncSession:
        """Return a session to look with, whatever its TTL, connected."""
        session = self.some()
        await session.ready(timeout)
        session.used = self._clock()
        return session

    def _open(self, ttl: float) -> AsyncSession:
        with self._mutex:
            former = session = self._by_ttl.get(ttl)
            if session is None or session.over:
                session = AsyncSession(self._settings, ttl, self._tick, self._clock, self._owner)
                self._by_ttl[ttl] = session
            others = [one for one in self._by_ttl.values() if one is not session]
            idle = sorted((one for one in others if not one.nodes), key=lambda one: one.used)
            spare = idle[: max(0, len(others) - SPARED)]
            for one in spare:
                del self._by_ttl[one.ttl]
            if former is not None and former is not session:
                spare.append(former)
        for one in spare:
            one.end(goodbye=True)
        return session

    def _refused(self, ttl: float, granted: float, name: str) -> NotSupported:
        where = self._settings.location
        if not granted:
            why = "kazoo does not say what it has negotiated with them; use a version we know"
        elif granted > ttl:
            why = (
                f"they keep a session for {granted:g} s at least (minSessionTimeout, two ticks by "
                f"default), so a dead holder's lock is not free before; ask for ttl={granted:g}"
            )
        else:
            why = (
                f"they keep a session for {granted:g} s at most (maxSessionTimeout, twenty ticks "
                f"by default); ask for ttl={granted:g}, or raise that"
            )
        return NotSupported(
            f"{name!r} cannot have ttl={ttl:g} s on {where}: {why}.", name=name, engine=where
        )

    async def end(self) -> None:
        """End all: with a goodbye where everything was given back, else in silence."""
        sessions, self._by_ttl = self._by_ttl, {}
        endings = [
            session.end(goodbye=all(node.leaving for node in session.nodes.values()))
            for session in sessions.values()
        ]
        until = self._clock() + END_MOST
        for ending in endings:
            await ending.wait(max(0.0, until - self._clock()))

    def abandon(self) -> None:
        """In a forked child: leave the parent's sessions alone."""
        for session in self._by_ttl.values():
            session.abandon()
        self._by_ttl = {}
        self._mutex = Mutex()
