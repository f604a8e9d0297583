"""A session with ZooKeeper: all that this client has there for one TTL lives and ends with it.

Rule 1 (S11): `not_after` is what answered writes have proven, and nothing else; see
        zookeeper_link/handler.py. A grant has no other validity than its session.
Rule 2: while anybody waits, a write that changes nothing is sent now and then: whoever gets a lock
        then has it with what is already proven.
Rule 3: once the session is lost all nodes are gone with it, and kazoo makes a new one, in which
        nothing of the last one counts.
Rule 4: what is told here is told from kazoo's thread, which must not wait for anybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from .._concurrency import AsyncSignal, Mutex, logger
from ..clocks import Clock
from ..errors import EngineUnavailable
from ..rules import validity
from ..zookeeper_link import CERTAIN, Answer, Handler, Settings, Wiretap, whole_millis
from ..zookeeper_link import requests as ask
from ..zookeeper_link.nodes import Node, Watches
from .zookeeper_flight import AsyncFlight

GOODBYE = 0.5  # seconds for a session to end in order
TOO_LONG = 2.0  # TTLs without a connection, after which the session is over whatever comes
NOTHING_TO_LOSE = 3.0  # seconds of the same, for a session on which nothing hangs
GIVEN_UP = ("AUTH_FAILED", "CLOSED")  # the servers refuse us, or kazoo's thread has ended
AT_ONCE = 100  # nodes that are looked after in one go


class AsyncOwner(Protocol):
    """Hears what becomes of nodes, in kazoo's thread."""

    def wake(self, owners: Iterable[str]) -> None:
        """Let these look again: what they waited for has gone, or nobody knows."""

    def taken(self, node: Node) -> None:
        """Hear that somebody else has deleted a node of ours."""

    def lost(self, nodes: Iterable[Node]) -> None:
        """Hear that these are gone with their session."""


class AsyncSession:
    """One client of kazoo, started when first needed, and what is known of it."""

    def __init__(
        self, settings: Settings, ttl: float, tick: float | None, clock: Clock, owner: AsyncOwner
    ) -> None:
        self.location = settings.location
        self.ttl = ttl
        self.not_after = -math.inf
        self.nodes: dict[str, Node] = {}  # by owner
        self.watches = Watches()
        self.used = clock()
        self._clock = clock
        self._owner = owner
        self._handler = Handler(clock, ttl, tick, settings.tls, self._beat)
        self._wiretap = Wiretap()
        self._kazoo = settings.make_client(ttl, self._handler, self._wiretap)
        self._kazoo.add_listener(self._changed)
        self._mutex = Mutex()
        self._started = False
        self._ended = False
        self._given_up = False  # kazoo does not come back from that
        self._down_since = math.inf
        self._arrivals: list[AsyncSignal] = []
        self._guarded: dict[str, Node] = {}  # by path
        self._beats = 0
        self._greetings: list[Callable[[], None]] = []  # what is said on every new connection

    # --- What is known. ---

    @property
    def live(self) -> bool:
        """Whether there is a connection, as far as known."""
        return bool(self._kazoo.connected) and not self._ended

    @property
    def asked(self) -> float:
        """Seconds that we want the servers to keep it: the TTL in whole milliseconds, not less."""
        return whole_millis(self.ttl) / 1000

    @property
    def negotiated(self) -> float:
        """Seconds that the servers keep this session without news; 0 if they have not said."""
        return self._wiretap.negotiated / 1000

    @property
    def number(self) -> int:
        """The session's id, as the servers know it; 0 without one."""
        known = self._kazoo.client_id
        return 0 if known is None else int(known[0])

    @property
    def settling(self) -> float:
        """Seconds after which what was sent has counted."""
        return self._handler.settling

    @property
    def over(self) -> bool:
        """Whether it is of no use any more: it was ended, or kazoo has given up."""
        return self._ended or self._given_up

    # --- Asking. ---

    async def ready(self, timeout: float) -> None:
        """Return once there is a connection; connect when first called."""
        if self.live:
            return
        arrival = AsyncSignal()
        with self._mutex:
            self._arrivals.append(arrival)
            if not self._started and not self._ended:
                self._started = True
                self._kazoo.start_async()
        try:
            if not self.live and not self.over and timeout > 0:
                await arrival.wait(timeout)
        finally:
            with self._mutex:
                if arrival in self._arrivals:
                    self._arrivals.remove(arrival)
        if not self.live:
            self._consider()
            why = self._wiretap.trouble or f"no connection within {max(0.0, timeout):.3g} s"
            raise EngineUnavailable(
                f"{self.location} cannot be reached: {why}.", engine=self.location
            )

    def _consider(self) -> None:
        """Give the session up if it is over by any reckoning: servers that have lost their data
        refuse for ever who has seen more than they know, and a new session has seen nothing."""
        with self._mutex:
            most = TOO_LONG * self.ttl
            if not self.nodes:
                most = min(most, NOTHING_TO_LOSE)
            if self.live or self._clock() - self._down_since < most:
                return
            self._given_up = True
        self._changed("LOST")

    def flight(self) -> AsyncFlight:
        """Return requests to be sent together."""
        return AsyncFlight(self)

    def answer(self) -> Answer:
        """Return an answer to come, for a request that is sent soon."""
        return self._handler.async_result()

    def send_all(self, requests: Sequence[tuple[Any, Answer]]) -> None:
        """Send requests in one go, each with what its answer is written into."""
        waker = self._handler.waker
        if waker is None or len(requests) < 2:
            for request, answer in requests:
                self._kazoo._call(request, answer)  # what every method of kazoo comes down to
            return
        waker.hold()
        try:
            for request, answer in requests:
                self._kazoo._call(request, answer)
        finally:
            waker.release()

    def send(self, request: Any) -> Answer:
        """Send one request, and return its answer to come."""
        answer = self.answer()
        self.send_all([(request, answer)])
        return answer

    def prove(self, answer: Answer) -> None:
        """Take note of what an answered write proves."""
        self.not_after = max(self.not_after, validity(answer.proven, self.ttl))

    def greet(self, call: Callable[[], None]) -> None:
        """Call this on every new connection, and now if there is one."""
        with self._mutex:
            self._greetings.append(call)
        if self.live:
            call()

    def part(self, call: Callable[[], None]) -> None:
        """Call this no more."""
        with self._mutex:
            self._greetings = [one for one in self._greetings if one != call]

    # --- What kazoo's thread says. ---

    def _changed(self, state: str) -> None:
        connected = state == "CONNECTED"
        nodes: list[Node] = []
        with self._mutex:
            self._down_since = math.inf if connected else min(self._down_since, self._clock())
            if state == "LOST":
                nodes, self.nodes = list(self.nodes.values()), {}
                self.not_after = -math.inf
                if str(self._kazoo.client_state) in GIVEN_UP:
                    self._given_up = True
            arrivals: list[AsyncSignal] = []
            if connected or self.over:
                arrivals, self._arrivals = self._arrivals, []
        for arrival in arrivals:
            arrival.set()
        if not self._ended:
            if not connected:  # with the connection went all watches
                self._owner.wake(self.watches.fire_all())
                self._unguard()
            self._owner.lost(nodes)
        if connected:
            for call in list(self._greetings):
                call()

    def fire(self, event: Any) -> None:
        """Hear that a node that was watched has gone."""
        if event.path is not None:
            self.passed(event.path)

    def passed(self, path: str) -> None:
        """Wake those who waited for this node to go."""
        self._owner.wake(self.watches.fire(path))

    def _beat(self) -> None:
        """Keep the session alive, what is held guarded, and, for those who wait, proven."""
        try:
            self._beats += 1
            nodes = list(self.nodes.values())
            self._drop(node for node in nodes if node.granted and not node.leaving)
            unguarded = [node for node in nodes if node.granted and not node.guarded]
            for node in unguarded[:AT_ONCE]:
                self._guard(node)
            waiting = next((node for node in nodes if node.waits), None)
            if waiting is not None and self._beats % 2:
                self.send(ask.check([waiting.path])).rawlink(self._pulse)
            elif not unguarded and not self._handler.owed:
                self.send(ask.exists("/"))
        except Exception:
            logger.exception("A session with %s could not be looked after.", self.location)

    def _pulse(self, answer: Answer) -> None:
        if answer.exception is None:
            self.prove(answer)

    def _drop(self, nodes: Iterable[Node]) -> None:
        """Delete what its holder has not renewed for a TTL: the session goes on without it."""
        late = self._clock() - self.ttl
        for node in nodes:
            if node.checked < late:
                node.leaving = True
                self.send(ask.delete(node.path)).rawlink(partial(self._dropped, node))

    def _dropped(self, node: Node, answer: Answer) -> None:
        if answer.exception is None or isinstance(answer.exception, CERTAIN):
            self.nodes.pop(node.claim.owner, None)
        else:
            node.leaving = False  # the next beat tries again

    # --- Nodes that somebody else might delete. ---

    def _guard(self, node: Node) -> None:
        node.guarded = True
        self._guarded[node.path] = node
        self.send(ask.exists(node.path, self._disturbed)).rawlink(self._looked(node))

    def _unguard(self) -> None:
        guarded, self._guarded = self._guarded, {}
        for node in guarded.values():
            node.guarded = False

    def _disturbed(self, event: Any) -> None:
        node = self._guarded.pop(event.path, None)
        if node is not None and not node.leaving:
            # Whoever answers this knows the session: then it was not its end that took the node.
            self.send(ask.exists(node.path)).rawlink(self._looked(node))

    def _looked(self, node: Node) -> Callable[[Answer], None]:
        def look(answer: Answer) -> None:
            if answer.exception is None and answer.value is None and not node.leaving:
                self._owner.taken(node)

        return look

    # --- The end. ---

    def end(self, goodbye: bool) -> AsyncSignal:
        """Begin to end; without a goodbye the nodes stay until the session's time is over."""
        with self._mutex:
            live = self.live
            started, self._ended = self._started and not self._ended, True
            arrivals, self._arrivals = self._arrivals, []
        for arrival in arrivals:
            arrival.set()
        done = AsyncSignal()
        if started:
            self._handler.hang_up(GOODBYE if goodbye and live else 0.0)
            # It waits for kazoo's thread; nobody should wait with it.
            self._handler.spawn(self._stop, done)
        else:
            done.set()
        return done

    def _stop(self, done: AsyncSignal) -> None:
        try:
            self._kazoo.stop()
            self._kazoo.close()
        except Exception:
            logger.exception("A session with %s did not end in order.", self.location)
        done.set()

    def abandon(self) -> None:
        """In a forked child: leave the parent's connection alone."""
        self._ended = True
        self._handler.abandon()
