"""(Generated from _async/engines/zookeeper_queue.py by tools/unasync.py: do not edit.) Places in ZooKeeper's queues: taking one, finding it again, seeing who is ahead, leaving it.

Rule 1: a node is known to us before it is sent; whoever loses its answer finds it again, or knows
        that it was never made and never will be: a server that has caught up with its leader shows
        all that an earlier connection of the session could still bring about.
Rule 2: a node is ours if our session made it, not by its name alone.
Rule 3: of one record, one list is under way at a time: it serves all who come meanwhile, and who
        is not on it asks for the next one. One that is too old shows only too many ahead, which is
        found out when they are to be watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...clocks import Clock
from ...errors import EngineUnavailable
from ...model import Holder
from ...sorted_queue import Standing
from ...zookeeper_link import MISSING, UNKNOWN, Answer, Settings
from ...zookeeper_link import requests as ask
from ...zookeeper_link.nodes import Node
from ...zookeeper_record import Contender, in_order, read_holder, stem, write_data
from ..zookeeper_flight import Flight
from ..zookeeper_session import Session

KNOWN = 4096  # records, and labels of holders, that are remembered


class Queues:
    """What one client does with the children of records."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lists: dict[tuple[Session, str], Answer] = {}  # those under way
        self._records: set[str] = set()  # that were there a while ago
        self._folder = ask.create_record
        self._holders: dict[str, Answer] = {}  # what the first nodes of queues say, by path

    def enter(self, session: Session, node: Node, end: float) -> Sequence[Contender]:
        """Make the node, and list its record in the same round trip."""
        if node.tried and self.find(session, node, end):
            return self.see(session, node, end)
        claim, parent = node.claim, node.parent
        request = ask.create_claim(f"{parent}/{stem(claim)}", write_data(claim), self._settings.acl)
        for attempt in range(3):
            flight = session.flight()
            record = self._prepare(flight, parent, thorough=attempt > 0)
            node.tried = True
            made = flight.write(request)
            made.rawlink(node.born)
            listed = None
            if self._under_way(session, parent) is None:  # else the next one comes soon enough
                listed = flight.join(self._list(flight, session, parent))
            flight.land(end - self._clock())
            if made.exception is None:
                if len(self._records) >= KNOWN:
                    self._records.clear()
                self._records.add(parent)
                return self.see(session, node, end) if listed is None else queue_of(listed)
            self._records.discard(parent)
            if record is not None and isinstance(record.exception, UNKNOWN):
                self._folder = ask.create_folder  # an old server: its records stay
        raise EngineUnavailable(
            f"{self._settings.location} has no node {parent!r} and does not let us make it; check "
            "the ACL of what is above.",
            name=claim.name,
            engine=self._settings.location,
        )

    def _prepare(self, flight: Flight, parent: str, thorough: bool) -> Answer | None:
        """Ask for the record's node, unless it was there, and for all above it if need be."""
        if parent in self._records:
            return None
        acl = self._settings.acl
        if thorough:
            parts = parent.split("/")[1:]
            for depth in range(1, len(parts)):
                flight.add(ask.create_folder("/" + "/".join(parts[:depth]), acl))
        return flight.add(self._folder(parent, acl))

    def find(self, session: Session, node: Node, end: float) -> bool:
        """Say whether a node whose answer was lost was made, and take it for ours then."""
        flight = session.flight()
        flight.send(ask.sync(node.parent))
        listed = flight.send(ask.children(node.parent))
        flight.land(end - self._clock())
        if node.path:
            return True  # the answer came after all
        owner = node.claim.owner
        for one in in_order(listed.value or ()):
            if one.owner == owner:
                path = f"{node.parent}/{one.node}"
                flight = session.flight()
                looked = flight.send(ask.exists(path))
                flight.land(end - self._clock())
                stat = looked.value
                if stat is not None and stat.ephemeralOwner == session.number:
                    node.token, node.path = int(stat.czxid), path
                    return True
        node.tried = False
        return False

    def see(self, session: Session, node: Node, end: float) -> Sequence[Contender]:
        """Return the queue that a node stands in, as this server knows it."""
        name = node.name
        while True:
            flight = session.flight()
            shared = self._under_way(session, node.parent)
            answer = shared or self._list(flight, session, node.parent)
            flight.join(answer)
            flight.land(end - self._clock())
            queue = queue_of(answer)
            if shared is None or any(one.node == name for one in queue):
                return queue

    def _under_way(self, session: Session, parent: str) -> Answer | None:
        answer = self._lists.get((session, parent))
        return None if answer is None or answer.ready() else answer

    def _list(self, flight: Flight, session: Session, parent: str) -> Answer:
        if len(self._lists) >= KNOWN:
            self._lists.clear()
        answer = self._lists[session, parent] = flight.add(ask.children(parent))
        return answer

    def watch(
        self, session: Session, node: Node, place: Standing[Contender], end: float
    ) -> bool:
        """Be woken when somebody ahead goes; False if one of them has already gone."""
        owner, limit = node.claim.owner, node.claim.limit or 1
        paths = tuple(f"{node.parent}/{one.node}" for one in place.blockers[-limit:])
        session.watches.leave(owner, node.ahead)
        node.ahead = paths
        flight = session.flight()
        asked: dict[str, Answer] = {}
        for path in session.watches.join(owner, paths):
            asked[path] = flight.send(ask.data(path, session.fire))
            # Whoever has joined meanwhile is told even if nobody waits for this answer any more.
            asked[path].rawlink(partial(_gone, session, path))
        first = f"{node.parent}/{place.blockers[0].node}"
        if first not in self._holders:
            self._remember(first, asked.get(first) or flight.send(ask.data(first)))
        flight.land(end - self._clock())
        return not any(isinstance(answer.exception, MISSING) for answer in asked.values())

    def holder(self, node: Node, place: Standing[Contender]) -> Holder | None:
        """Return who stands first, as far as known."""
        answer = self._holders.get(f"{node.parent}/{place.blockers[0].node}")
        found = answer is not None and answer.ready() and answer.exception is None
        return read_holder(*answer.value) if answer is not None and found else None

    def leave(self, session: Session, node: Node, end: float, first: str = "") -> bool:
        """Delete the node; say whether it was there. Look who is `first` in the same trip."""
        node.leaving = True
        session.watches.leave(node.claim.owner, node.ahead)
        flight = session.flight()
        gone = flight.write(ask.delete(node.path))
        if first and first not in self._holders:
            self._remember(first, flight.send(ask.data(first)))
        flight.land(end - self._clock())
        session.nodes.pop(node.claim.owner, None)
        return gone.exception is None

    def _remember(self, path: str, answer: Answer) -> None:
        if len(self._holders) >= KNOWN:
            self._holders.clear()
        self._holders[path] = answer


def queue_of(listed: Answer) -> Sequence[Contender]:
    """Return the queue that a list shows, put in order once for all who share it."""
    if not isinstance(listed.value, tuple):
        listed.value = tuple(in_order(listed.value or ()))
    queue: tuple[Contender, ...] = listed.value
    return queue


def _gone(session: Session, path: str, answer: Answer) -> None:
    """Hear in kazoo's thread that a node to be watched was not there any more."""
    if isinstance(answer.exception, MISSING):
        session.passed(path)
