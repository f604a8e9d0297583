"""The simulated engine: what any real one must do, over the simulated network.

Rule 1: every request has a deadline; silence is OutcomeUnknown, a refused connection is
        EngineUnavailable, and the connection that saw it is thrown away (S1).
Rule 2 (S6): a claim carries the latest server time at which it is still wanted, anchored on the
        last reply of its connection; refused as too late, it is sent again with a fresh anchor.
Rule 3 (S10): a pushed grant is valid as `rules.pushed_validity` says, anchored on the request that
        queued it; without an anchor it proves nothing.
Rule 4 (S6): a pushed grant nobody waits for is released at once; but not one that has come to us
        by another way already, as the answer to a claim that was repeated meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import copy_context
from itertools import count
from typing import Any

from ..._async.engine import AsyncEngine, Notice
from ..._async.inbox import AsyncInbox
from ...clocks import Clock
from ...errors import EngineUnavailable, LockError, OutcomeUnknown
from ...model import Claim, Fault, Grant, Guarantees, Outcome, Queued, Reason, Renewal, Snapshot
from ...rules import pushed_validity, validity
from ..loop import VirtualLoop, current_process
from . import server as verbs
from .history import Called, History
from .network import Link, Network
from .server import LockServer, Reply, Session, TooLate

_REFUSED = "refused"
_BROKEN = "broken"
_SILENT = "silent"


class _Connection:
    """One request at a time; thrown away when one had no answer."""

    __slots__ = ("anchor",)

    def __init__(self) -> None:
        self.anchor: tuple[float, float] | None = None  # our clock, the server's: the last reply


class SimEngine(AsyncEngine):
    """Made inside the process whose client uses it."""

    family = "simulated"
    instant = False

    def __init__(
        self,
        loop: VirtualLoop,
        network: Network,
        server: LockServer,
        link: Link,
        history: History,
        clock: Clock,
        client: str,
    ) -> None:
        self.location = "sim://server"
        self.guarantees = Guarantees(
            engine=self.family,
            fencing=True,
            exclusive=frozenset(Fault)
            - {Fault.SERVER_DATA_LOSS, Fault.FAILOVER, Fault.CLIENT_CLOCK_STEP},
            fair=True,
            push=True,
            crash_detection=False,
            expiry="lease",
            min_ttl=0.02,
            max_ttl=60.0,
            at_least=True,
        )
        self.link = link
        self.context = copy_context()
        self.session = Session(server, self)
        self._loop = loop
        self._network = network
        self._server = server
        self._history = history
        self._clock = clock
        self._client = client
        self._inbox = AsyncInbox()
        self._notice: Notice | None = None
        self._numbers = count()
        self._pending: dict[int, asyncio.Future[Reply | str]] = {}
        self._idle: list[_Connection] = []
        self._anchors: dict[str, tuple[float, float]] = {}  # by owner: c0 and s0 of S10
        self._in_use: set[str] = set()  # owners whose grant was handed to the client
        self._closed = False

    # --- The verbs. ---

    async def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See AsyncEngine."""
        self._called(verbs.CLAIM, claim.owner)
        if claim.queue:
            self._inbox.expect(claim.owner)
        end = self._clock() + timeout
        while True:
            sent = self._clock()
            connection = self._connection()
            wanted = None
            if connection.anchor is not None:
                ours, theirs = connection.anchor
                wanted = theirs + (end - ours)
            reply = await self._ask(connection, end - sent, verbs.CLAIM, claim, wanted)
            answer = reply.result
            if isinstance(answer, int):
                self._take(claim.owner)
                return Grant(answer, validity(sent, claim.ttl))
            if isinstance(answer, Queued):
                if claim.queue:
                    self._anchors[claim.owner] = sent, reply.time
                else:
                    self._history.add(self._record("refused", claim.owner))
                return answer
            assert isinstance(answer, TooLate)  # and its reply was the fresh anchor
            if self._clock() >= end:
                raise EngineUnavailable("The claim was not wanted any more.", name=claim.name)

    async def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See AsyncEngine."""
        self._history.verbs["wait"] += 1
        grant = await self._inbox.wait(claim.owner, timeout)
        if grant is not None:
            self._take(claim.owner)
        return grant

    def _take(self, owner: str) -> None:
        self._inbox.forget(owner)
        self._anchors.pop(owner, None)
        self._in_use.add(owner)

    async def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See AsyncEngine."""
        self._history.verbs[verbs.RENEW] += len(claims)
        sent = self._clock()
        reply = await self._ask(self._connection(), timeout, verbs.RENEW, list(claims))
        return [
            Renewal(Outcome.RENEWED, validity(sent, claim.ttl))
            if reason is None
            else Renewal(Outcome.LOST, reason=reason)
            for claim, reason in zip(claims, reply.result, strict=True)
        ]

    async def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See AsyncEngine."""
        self._called(verbs.RELEASE, claim.owner)
        self._inbox.forget(claim.owner)
        self._anchors.pop(claim.owner, None)
        self._in_use.discard(claim.owner)
        reply = await self._ask(self._connection(), timeout, verbs.RELEASE, claim, linger)
        held: bool = reply.result
        return held

    async def inspect(self, key: str, timeout: float) -> Snapshot:
        """See AsyncEngine."""
        self._history.verbs[verbs.INSPECT] += 1
        reply = await self._ask(self._connection(), timeout, verbs.INSPECT, key)
        shot: Snapshot = reply.result
        return shot

    async def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See AsyncEngine."""
        self._history.verbs[verbs.LIST] += 1
        reply = await self._ask(self._connection(), timeout, verbs.LIST, prefix)
        shots: Sequence[Snapshot] = reply.result
        return shots

    async def force(self, key: str, token: int | None, timeout: float) -> int:
        """See AsyncEngine."""
        self._history.verbs[verbs.FORCE] += 1
        reply = await self._ask(self._connection(), timeout, verbs.FORCE, key, token)
        broken: int = reply.result
        return broken

    async def ping(self, timeout: float) -> None:
        """See AsyncEngine."""
        self._history.verbs[verbs.PING] += 1
        await self._ask(self._connection(), timeout, verbs.PING)

    def notices(self, callback: Notice) -> None:
        """See AsyncEngine."""
        self._notice = callback

    def watch(self, key: str, callback: Callable[[], None]) -> Callable[[], None] | None:
        """See AsyncEngine."""
        return None

    def stop_waiting(self) -> None:
        """See AsyncEngine."""
        self._inbox.close()

    async def close(self) -> None:
        """See AsyncEngine."""
        self._inbox.close()
        self._closed = self.session.over = True
        self.session.connected = False

    def after_fork(self) -> None:
        """See AsyncEngine."""
        raise NotImplementedError("a simulated process does not fork")

    # --- Asking. ---

    def _connection(self) -> _Connection:
        return self._idle.pop() if self._idle else _Connection()

    async def _ask(self, connection: _Connection, timeout: float, verb: str, *body: Any) -> Reply:
        number = next(self._numbers)
        future: asyncio.Future[Reply | str] = self._loop.create_future()
        self._pending[number] = future
        self._send(number, verb, body)
        timer = self._loop.call_later(max(0.0, timeout), _resolve, future, _SILENT)
        try:
            reply = await future
        finally:
            timer.cancel()
            self._pending.pop(number, None)
        if isinstance(reply, str):
            message = f"The server's connection was {reply} after {timeout:.3g} s."
            raise (EngineUnavailable if reply is _REFUSED else OutcomeUnknown)(message)
        connection.anchor = self._clock(), reply.time
        self._idle.append(connection)
        if isinstance(reply.result, LockError):
            raise reply.result
        return reply

    def _send(self, number: int, verb: str, body: tuple[Any, ...]) -> None:
        process = current_process()
        if process is None or not process.alive:
            return  # a coroutine that is being buried with its process
        server = self._server
        self._network.request(
            self.link, server.receive, self.session, server.incarnation, number, verb, body
        )

    # --- What arrives, in our process. ---

    def answered(self, number: int, reply: Reply) -> None:
        """See Caller."""
        self._settle(number, reply)

    def refused(self, number: int) -> None:
        """See Caller."""
        self._settle(number, _REFUSED)

    def _settle(self, number: int, reply: Reply | str) -> None:
        future = self._pending.get(number)
        if future is not None:
            _resolve(future, reply)

    def disconnected(self) -> None:
        """See Caller."""
        self._idle.clear()
        for future in list(self._pending.values()):
            _resolve(future, _BROKEN)

    def pushed(self, claim: Claim, token: int, at: float) -> None:
        """See Caller."""
        received = self._clock()
        anchor = self._anchors.get(claim.owner)
        not_after = received
        if anchor is not None:
            not_after = pushed_validity(
                anchor=anchor[0],
                anchor_server=anchor[1],
                granted_server=at,
                received=received,
                ttl=claim.ttl,
            )
        expected = self._inbox.deliver(claim.owner, Grant(token, not_after))
        if not expected and claim.owner not in self._in_use:
            self._send(next(self._numbers), verbs.RELEASE, (claim, 0.0))

    def noticed(self, owner: str, reason: Reason) -> None:
        """See Caller."""
        if self._notice is not None:
            self._notice(owner, reason)

    # --- What is written down. ---

    def _record(self, verb: str, owner: str) -> Called:
        return Called(self._loop.time(), self._client, verb, owner)

    def _called(self, verb: str, owner: str) -> None:
        self._history.verbs[verb] += 1
        self._history.add(self._record(verb, owner))


def _resolve(future: asyncio.Future[Reply | str], value: Reply | str) -> None:
    if not future.done():
        future.set_result(value)
