"""Looking at ZooKeeper's records, and breaking them: what others have there, up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...clocks import Clock
from ...model import Claim, Reason, Snapshot
from ...sorted_queue import divide
from ...zookeeper_link import MISSING, Answer
from ...zookeeper_link import requests as ask
from ...zookeeper_record import Contender, in_order, read_snapshot
from ..zookeeper_session import AsyncSession
from .zookeeper_sessions import AsyncSessions

AT_ONCE = 500  # requests that go out together


class AsyncLook:
    """Reads and repairs; every look first lets the server catch up with its leader."""

    def __init__(self, root: str, sessions: AsyncSessions, clock: Clock) -> None:
        self._root = root
        self._sessions = sessions
        self._clock = clock

    async def inspect(self, keys: Sequence[str], timeout: float) -> list[Snapshot]:
        """Show records, each as it was at about the same instant."""
        end = self._clock() + timeout
        session = await self._sessions.any(timeout)
        queues = await self._queues(session, keys, end)
        wanted = [f"{self._path(key)}/{one.node}" for key, queue in queues for one in queue]
        answers = await self._read(session, wanted, end)
        shots = []
        for key, queue in queues:
            paths = {one.node: f"{self._path(key)}/{one.node}" for one in queue}
            found = {
                node: answers[path].value
                for node, path in paths.items()
                if answers[path].exception is None
            }
            shots.append(read_snapshot(key, queue, found))
        return shots

    async def records(self, prefix: str, timeout: float) -> list[Snapshot]:
        """Show every record in use whose key starts with `prefix`."""
        end = self._clock() + timeout
        folder, _, start = prefix.rpartition("/")
        session = await self._sessions.any(timeout)
        flight = session.flight()
        flight.send(ask.sync(self._path(folder)))
        listed = flight.send(ask.children(self._path(folder)))
        await flight.read(end - self._clock())
        names = sorted(name for name in listed.value or () if name.startswith(start))
        shots: list[Snapshot] = []
        for at in range(0, len(names), AT_ONCE):
            keys = [f"{folder}/{name}" for name in names[at : at + AT_ONCE]]
            shots += await self.inspect(keys, end - self._clock())
        return [shot for shot in shots if shot.kind is not None]

    async def force(self, key: str, token: int | None, timeout: float) -> int:
        """Remove all holders, or the one with that token; return how many."""
        end = self._clock() + timeout
        session = await self._sessions.any(timeout)
        ((_, queue),) = await self._queues(session, [key], end)
        inside = divide(queue, queue[0].limit)[0] if queue else []
        paths = [f"{self._path(key)}/{one.node}" for one in inside]
        if token is not None:
            flight = session.flight()
            stats = {path: flight.send(ask.exists(path)) for path in paths}
            await flight.read(end - self._clock())
            paths = [path for path, one in stats.items() if one.value and one.value.czxid == token]
        flight = session.flight()
        broken = [flight.write(ask.delete(path)) for path in paths]
        await flight.land(end - self._clock())
        return sum(one.exception is None for one in broken)

    async def reasons(self, claims: Sequence[Claim], timeout: float) -> list[Reason]:
        """Say why claims that are not there any more are lost: is another inside (S17)?"""
        end = self._clock() + timeout
        session = await self._sessions.any(timeout)
        queues = dict(await self._queues(session, {claim.key for claim in claims}, end))
        return [Reason.STOLEN if queues[claim.key] else Reason.EXPIRED for claim in claims]

    def watch(self, key: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each change of a record, until the returned function is called."""
        return AsyncWatching(self._sessions.some(), self._path(key), callback).stop

    async def _queues(
        self, session: AsyncSession, keys: Iterable[str], end: float
    ) -> list[tuple[str, list[Contender]]]:
        flight = session.flight()
        flight.send(ask.sync(self._root or "/"))
        listed = {key: flight.send(ask.children(self._path(key))) for key in keys}
        await flight.read(end - self._clock())
        return [(key, in_order(answer.value or ())) for key, answer in listed.items()]

    async def _read(
        self, session: AsyncSession, paths: Sequence[str], end: float
    ) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        for at in range(0, len(paths), AT_ONCE):
            flight = session.flight()
            for path in paths[at : at + AT_ONCE]:
                answers[path] = flight.send(ask.data(path))
            await flight.read(end - self._clock())
        return answers

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"


class AsyncWatching:
    """Somebody who wants to hear of every change of one record; told from kazoo's thread.

    A change that comes while the server is being asked to tell of the next one is seen by the look
    that the callback leads to. Every new connection is asked again.
    """

    def __init__(self, session: AsyncSession, path: str, callback: Callable[[], None]) -> None:
        self._session = session
        self._path = path
        self._callback = callback
        self._stopped = False
        session.greet(self._ask)

    def _ask(self) -> None:
        self._session.send(ask.children(self._path, self._hear)).rawlink(self._looked)

    def _hear(self, event: Any) -> None:
        if not self._stopped:
            if event.path is not None:
                self._ask()
            self._callback()

    def _looked(self, answer: Answer) -> None:
        if isinstance(answer.exception, MISSING):
            self._session.send(ask.exists(self._path, self._hear))  # until somebody makes it

    def stop(self) -> None:
        """Tell no more."""
        self._stopped = True
        self._session.part(self._ask)
