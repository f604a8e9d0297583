"""(Generated from _async/engines/zookeeper.py by tools/unasync.py: do not edit.) zookeeper://: an ensemble that agrees on one queue per lock, in which everybody finds himself.

Rule 1: a claim is an ephemeral node with a number; who is inside follows from the names of all
        nodes of the record (sorted_queue). Nobody is ever put before another.
Rule 2: the token is the czxid of the claim's own node, from the answer that made it.
Rule 3: a waiter watches the last node that keeps it out, with a limit the last `limit` of them, one
        of which has gone by the time it may enter; nobody else is woken.
Rule 4 (S11): a grant is valid as long as its session is proven to live, by writes that a majority
        has agreed to. Every TTL has a session of its own, whose time-out is the TTL.
Rule 5: what is proven is read before it is made sure that the node is still one of the session's:
        a session that is lost takes its nodes with it, and a new one proves nothing for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from ..._concurrency import sleep
from ...clocks import Clock, boot_clock
from ...errors import LockMismatch, OutcomeUnknown
from ...lock_table import mismatch
from ...model import Claim, Fault, Grant, Guarantees, Queued, Reason, Renewal, Snapshot
from ...sorted_queue import standing
from ...zookeeper_link import Acl, choose, from_client, from_url
from ...zookeeper_link import requests as ask
from ...zookeeper_link.nodes import Node
from ...zookeeper_record import Contender
from ..engine import Engine, Notice
from ..inbox import Inbox
from ..zookeeper_session import Session
from .zookeeper_look import Look
from .zookeeper_queue import Queues
from .zookeeper_renewal import Renewals
from .zookeeper_sessions import Sessions

HELD_UNDER = frozenset(
    {
        Fault.CLIENT_PAUSE,
        Fault.CLIENT_CRASH,
        Fault.CLIENT_CLOCK_STEP,
        Fault.PARTITION,
        Fault.SERVER_PAUSE,
        Fault.SERVER_RESTART,
        Fault.SERVER_CLOCK_STEP,
        Fault.FAILOVER,
    }
)
SHORTEST = 0.5  # seconds; the servers have a bound of their own
BARRED = 300.0  # seconds that an owner is remembered who let go before its claim came (S6)
ENOUGH = 0.25  # of the TTL: with less proven, a grant is confirmed first


class ZooKeeperEngine(Engine):
    """Locks on a ZooKeeper ensemble. `held` is exclusive as long as that keeps its data."""

    family = "zookeeper"
    shielded = False  # a node may be deleted twice, and the keeper does so
    url_options: ClassVar[Mapping[str, Callable[[str], Any]]] = {"acl": str, "tick_time": float}

    def __init__(
        self,
        url: Any,
        *,
        max_ttl: float,
        clock: Clock = boot_clock,
        acl: Acl | None = None,
        sasl_options: Mapping[str, Any] | None = None,
        tick_time: float | None = None,
    ) -> None:
        if tick_time is not None and not 0 < tick_time < math.inf:
            raise ValueError(f"tick_time must be more than 0 seconds, not {tick_time!r}.")
        settings = from_url(url) if isinstance(url, str) else from_client(url)
        self.settings = choose(settings, acl, sasl_options)
        self.location = self.settings.location
        self.tick_time = tick_time
        self.guarantees = Guarantees(
            engine=self.family,
            fencing=True,
            exclusive=HELD_UNDER,
            fair=True,
            push=True,
            crash_detection=False,
            expiry="session",
            min_ttl=SHORTEST,
            max_ttl=max_ttl,
            at_least=False,
        )
        self._clock = clock
        self._notice: Notice | None = None
        self._start_over()

    def _start_over(self) -> None:
        """Know nothing yet: no sessions, no waiters."""
        self.sessions = Sessions(self.settings, self.tick_time, self._clock, self)
        self._queues = Queues(self.settings, self._clock)
        self._look = Look(self.settings.root, self.sessions, self._clock)
        thorough = self.tick_time is not None
        self._renewals = Renewals(self.sessions, self._look, thorough, self._clock)
        self._inbox = Inbox()
        self._barred: dict[str, float] = {}

    # --- Verbs. ---

    def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See Engine."""
        end = self._clock() + timeout
        session = self.sessions.take(claim.ttl, timeout, claim.name)
        node = session.nodes.get(claim.owner)
        if claim.owner in self._barred or (node is not None and node.leaving):
            return Queued(0, math.inf)
        if node is None:
            node = Node(claim, f"{self.settings.root}/{claim.key}")
            session.nodes[claim.owner] = node
        if claim.queue and claim.owner not in self._inbox.slots:
            self._inbox.expect(claim.owner)
        while True:
            if node.granted:
                grant = self._confirmed(session, node, end)
                if grant is not None:
                    return grant
                node.forget()
            if node.path:
                queue = self._queues.see(session, node, end)
            else:
                queue = self._queues.enter(session, node, end)
            answer = self._judge(session, node, queue, end)
            if answer is not None:
                return answer

    def _judge(
        self, session: Session, node: Node, queue: Sequence[Contender], end: float
    ) -> Grant | Queued | None:
        """Say what the queue means for a node; None = look again."""
        claim, name = node.claim, node.name
        at = next((at for at, one in enumerate(queue) if one.node == name), None)
        if at is None:  # somebody has deleted it: come anew
            self._check(session, node)
            node.forget()
            return None
        first = queue[0]
        if (first.family, first.limit) != (claim.family, claim.limit):
            self._queues.leave(session, node, end)
            self._inbox.forget(claim.owner)
            text = mismatch(claim, first.family, first.limit)
            raise LockMismatch(text, name=claim.name, engine=self.location)
        place = standing(queue, at, claim.limit)
        if place.inside:
            return self._let_in(session, node)
        if not claim.queue:
            self._queues.leave(session, node, end, f"{node.parent}/{first.node}")
        elif not self._queues.watch(session, node, place, end):
            return None
        return Queued(place.position, math.inf, self._queues.holder(node, place))

    def _let_in(self, session: Session, node: Node) -> Grant | None:
        owner = node.claim.owner
        session.watches.leave(owner, node.ahead)
        node.granted, node.checked, node.ahead = True, self._clock(), ()
        until = session.not_after
        if until - node.checked < ENOUGH * node.claim.ttl:
            return None  # it is confirmed as one that was granted before
        self._check(session, node)
        self._inbox.forget(owner)
        return tuple.__new__(Grant, (node.token, until))

    def _confirmed(self, session: Session, node: Node, end: float) -> Grant | None:
        """Return the grant of a node that is inside, with time enough; None if it is gone."""
        while True:
            flight = session.flight()
            checked = flight.write(ask.check([node.path]))
            flight.land(end - self._clock())
            until = session.not_after
            self._check(session, node)
            if checked.value != [True]:
                return None
            now = node.checked = self._clock()
            nap = min(session.settling, end - now)
            if until - now >= ENOUGH * node.claim.ttl or nap <= 0:
                self._inbox.forget(node.claim.owner)
                return Grant(node.token, until)
            sleep(nap)  # until what we have just sent counts

    def _check(self, session: Session, node: Node) -> None:
        """Make sure that the session has not been lost, and the node with it."""
        if session.nodes.get(node.claim.owner) is not node:
            raise OutcomeUnknown(
                f"The session with {self.location} was lost, and {node.claim.name!r} with it.",
                name=node.claim.name,
                engine=self.location,
            )

    def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See Engine; who is woken looks for himself."""
        self._inbox.wait(claim.owner, timeout)
        return None

    def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See Engine."""
        return self._renewals.run(claims, timeout)

    def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See Engine."""
        end = self._clock() + timeout
        owner = claim.owner
        if self._inbox.slots:
            self._inbox.forget(owner)
        session = self.sessions.find(claim.ttl)
        node = None if session is None else session.nodes.get(owner)
        if session is None or node is None:
            self._bar(owner)
            return False
        node.leaving = True
        if not session.live:
            session.ready(timeout)
        if not node.path and not (node.tried and self._queues.find(session, node, end)):
            session.nodes.pop(owner, None)
            self._bar(owner)
            return False
        return self._queues.leave(session, node, end) and node.granted

    def _bar(self, owner: str) -> None:
        now = self._clock()
        while self._barred and next(iter(self._barred.values())) < now - BARRED:
            del self._barred[next(iter(self._barred))]
        self._barred[owner] = now

    def inspect(self, key: str, timeout: float) -> Snapshot:
        """See Engine."""
        return (self._look.inspect([key], timeout))[0]

    def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See Engine."""
        return self._look.records(prefix, timeout)

    def force(self, key: str, token: int | None, timeout: float) -> int:
        """See Engine."""
        return self._look.force(key, token, timeout)

    def ping(self, timeout: float) -> None:
        """See Engine."""
        end = self._clock() + timeout
        flight = (self.sessions.any(timeout)).flight()
        flight.send(ask.exists("/"))
        flight.read(end - self._clock())

    # --- What sessions tell, in kazoo's thread. ---

    def wake(self, owners: Iterable[str]) -> None:
        """See Owner."""
        for owner in owners:
            self._inbox.nudge(owner)

    def taken(self, node: Node) -> None:
        """See Owner."""
        session = self.sessions.find(node.claim.ttl)
        if session is not None and session.nodes.get(node.claim.owner) is node:
            session.nodes.pop(node.claim.owner, None)
            if node.granted and self._notice is not None:
                self._notice(node.claim.owner, Reason.FORCED)

    def lost(self, nodes: Iterable[Node]) -> None:
        """See Owner."""
        for node in nodes:
            self._inbox.nudge(node.claim.owner)
            if node.granted and not node.leaving and self._notice is not None:
                self._notice(node.claim.owner, Reason.EXPIRED)

    # --- The rest. ---

    def notices(self, callback: Notice) -> None:
        """See Engine."""
        self._notice = callback

    def watch(self, key: str, callback: Callable[[], None]) -> Callable[[], None]:
        """See Engine."""
        return self._look.watch(key, callback)

    def stop_waiting(self) -> None:
        """See Engine."""
        self._inbox.close()

    def close(self) -> None:
        """See Engine."""
        self._inbox.close()
        self.sessions.end()

    def after_fork(self) -> None:
        """See Engine."""
        self.sessions.abandon()
        self._start_over()
