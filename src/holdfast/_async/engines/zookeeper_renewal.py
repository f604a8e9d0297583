"""Renewing on ZooKeeper: one write per session finds all its nodes there, and proves its time.

Rule 1 (S11): the write changes nothing and a majority agrees to it. A leader that does not know of
        its end yet answers reads, and even `sync`, but never this.
Rule 2: a node that is not there while its session lives was deleted by somebody else: forced.
Rule 3: what was not answered is unknown; a session without a connection is not waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._concurrency import asleep
from ...clocks import Clock
from ...errors import EngineUnavailable, OutcomeUnknown
from ...model import UNKNOWN, Claim, Outcome, Reason, Renewal
from ...zookeeper_link import MISSING, explain
from ...zookeeper_link import requests as ask
from ...zookeeper_link.nodes import Node
from ..zookeeper_session import AsyncSession
from .zookeeper_look import AsyncLook
from .zookeeper_sessions import AsyncSessions

BATCH = 256  # nodes that are checked by one write
SHARE = 1 / 4  # of the TTL, for the answer
ANSWER_MOST = 2.0  # seconds for it: who waits longer is told that it is late
AHEAD_OF_TIME = 0.3  # of the TTL: who renews sooner than that wants as much as can be proven


class AsyncRenewals:
    """Renews claims, of whatever sessions."""

    def __init__(
        self, sessions: AsyncSessions, look: AsyncLook, thorough: bool, clock: Clock
    ) -> None:
        self._sessions = sessions
        self._look = look
        self._thorough = thorough  # what was sent counts so soon that it is worth waiting for
        self._clock = clock

    async def run(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """Renew all; raise only if nothing at all was answered."""
        found: dict[str, Renewal] = {}
        error: Exception | None = None
        for session, nodes in self._by_session(claims).items():
            try:
                await self._renew(session, nodes, timeout, found)
            except (EngineUnavailable, OutcomeUnknown) as problem:
                error = problem
                for node in nodes:
                    found.setdefault(node.claim.owner, UNKNOWN)
        if error is not None and all(one is UNKNOWN for one in found.values()):
            raise error
        lost = [claim for claim in claims if claim.owner not in found]
        for claim, reason in zip(lost, await self._reasons(lost, timeout), strict=True):
            found[claim.owner] = Renewal(Outcome.LOST, reason=reason)
        return [found[claim.owner] for claim in claims]

    def _by_session(self, claims: Sequence[Claim]) -> dict[AsyncSession, list[Node]]:
        nodes: dict[AsyncSession, list[Node]] = {}
        for claim in claims:
            session = self._sessions.find(claim.ttl)
            node = None if session is None else session.nodes.get(claim.owner)
            if session is not None and node is not None and node.granted and not node.leaving:
                nodes.setdefault(session, []).append(node)
        return nodes

    async def _renew(
        self,
        session: AsyncSession,
        nodes: Sequence[Node],
        timeout: float,
        found: dict[str, Renewal],
    ) -> None:
        now = self._clock()
        end = now + min(timeout, SHARE * session.ttl, ANSWER_MOST)
        early = any(now - node.checked < AHEAD_OF_TIME * session.ttl for node in nodes)
        left = await self._check(session, nodes, end, found)
        if self._thorough and early and end - self._clock() > session.settling:
            await asleep(session.settling)  # until what we have just sent counts
            left = await self._check(session, left, end, found)
        until = session.not_after
        for node in left:
            if session.nodes.get(node.claim.owner) is node:  # else it is lost with its session
                node.checked = now
                found[node.claim.owner] = Renewal(Outcome.RENEWED, until)

    async def _check(
        self, session: AsyncSession, nodes: Sequence[Node], end: float, found: dict[str, Renewal]
    ) -> Sequence[Node]:
        """Return the nodes that are there, all of them at once; forget the others."""
        left = list(nodes)
        while left:
            if not session.live:
                await session.ready(end - self._clock())
            flight = session.flight()
            batches = [left[at : at + BATCH] for at in range(0, len(left), BATCH)]
            answers = [flight.write(ask.check(node.path for node in batch)) for batch in batches]
            try:
                await flight.land(end - self._clock())
            except OutcomeUnknown:
                if session.live or self._clock() >= end:
                    raise
                continue  # that connection is gone; there is time for another one
            results = [one for answer in answers for one in answer.value]
            if all(one is True for one in results):
                break
            gone = [
                node for node, one in zip(left, results, strict=True) if isinstance(one, MISSING)
            ]
            if not gone:
                other = next(one for one in results if one is not True)
                raise explain(session.location, other)
            for node in gone:
                session.nodes.pop(node.claim.owner, None)
                found[node.claim.owner] = Renewal(Outcome.LOST, reason=Reason.FORCED)
            left = [node for node in left if node not in gone]
        return left

    async def _reasons(self, claims: Sequence[Claim], timeout: float) -> Sequence[Reason]:
        if not claims:
            return []
        try:
            return await self._look.reasons(claims, timeout)
        except (EngineUnavailable, OutcomeUnknown):
            return [Reason.EXPIRED] * len(claims)
