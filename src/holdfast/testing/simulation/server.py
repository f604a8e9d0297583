"""The simulated lock server: `memory_state.State` behind a network, with clocks of its own.

Rule 1: expiry runs on a clock that never steps; tokens are numbered by a wall clock that may.
Rule 2: a request is executed when it arrives, whoever still waits for its answer. While the server
        is paused requests pile up and are executed at resume; a crash loses those under way.
Rule 3: a claim that arrives after the instant until which it is wanted is refused, with the
        server's time (S6).
Rule 4: a push goes to whoever has a connection; nobody there means the waiter is skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any, NamedTuple, Protocol

from ...errors import LockError
from ...memory_state import State
from ...model import Claim, Queued, Reason
from ..loop import ProcessClock, VirtualLoop
from .history import History, Kept, Left, Minted, Revoked
from .network import Link, Network

CLAIM, RENEW, RELEASE, FORCE = "claim", "renew", "release", "force"
INSPECT, LIST, PING = "inspect", "list", "ping"
WALL_START = 1_700_000_000_000_000  # µs


class Reply(NamedTuple):
    """An answer, with the server's time at which it was made."""

    time: float
    result: Any


class TooLate:
    """The claim was not wanted any more when it arrived: nothing was done."""


TOO_LATE = TooLate()


class Caller(Protocol):
    """The client's end of a connection."""

    link: Link
    context: Context  # what arrives runs in the client's process

    def answered(self, number: int, reply: Reply) -> None:
        """Take the answer to a request."""

    def refused(self, number: int) -> None:
        """Hear that nobody listened: the request did nothing."""

    def disconnected(self) -> None:
        """Hear that all connections are gone."""

    def pushed(self, claim: Claim, token: int, at: float) -> None:
        """Take a grant that was made while the claim waited."""

    def noticed(self, owner: str, reason: Reason) -> None:
        """Hear that an owner was removed."""


class Session:
    """What the server knows of one client process; a `memory_state.Channel`."""

    def __init__(self, server: LockServer, caller: Caller) -> None:
        self._server = server
        self.caller = caller
        self.number = len(server.sessions)
        server.sessions.append(self)
        self.connected = False
        self.over = False  # its process is gone: nothing that arrives late connects it again

    def queued(self, claim: Claim) -> None:
        """Take note that a claim has a place in the queue."""
        self._server.seen.add(claim.owner)

    def granted(self, claim: Claim, token: int, at: float) -> bool:
        """Push a grant, if there is a connection; whether it arrives is another matter."""
        if self.connected:
            self._server.note_minted(claim, token)
            self._server.tell(self.caller, self.caller.pushed, claim, token, at)
        return self.connected

    def revoked(self, owner: str, reason: Reason) -> None:
        """Send a notice, if there is a connection."""
        self._server.note_revoked(owner)
        if self.connected:
            self._server.tell(self.caller, self.caller.noticed, owner, reason)


class LockServer:
    """One server for all clients; it pauses, crashes, forgets, and its wall clock steps."""

    def __init__(
        self, loop: VirtualLoop, network: Network, history: History, clock: ProcessClock
    ) -> None:
        self.clock = clock
        self.epoch = 0  # how often the data was lost
        self.incarnation = 0  # how often it was started
        self.seen: set[str] = set()  # owners that held or waited, in this epoch
        self.sessions: list[Session] = []
        self.state = State(clock, self.micros)
        self._loop = loop
        self._network = network
        self._history = history
        self._wall_offset = 0.0
        self._tokens: dict[str, int] = {}
        self._world = Context()
        self._up_at = self._awake_at = 0.0
        self._backlog: list[tuple[Any, ...]] = []
        self._turned_away: set[tuple[int, int]] = set()  # never sent, so never copied either

    def micros(self) -> int:
        """Return the wall clock, which only numbers tokens."""
        return WALL_START + int((self._loop.time() + self._wall_offset) * 1e6)

    # --- What goes wrong with it. ---

    def step_wall_clock(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._wall_offset += seconds

    def pause(self, seconds: float) -> None:
        """Stop (SIGSTOP): what arrives waits."""
        self._awake_at = max(self._awake_at, self._loop.time() + seconds)
        self._loop.call_at(self._awake_at, self._catch_up, context=self._world)

    def crash(self, seconds: float, lose_data: bool) -> None:
        """Die (SIGKILL), and come back after `seconds`, with or without the data."""
        self._up_at = max(self._up_at, self._loop.time() + seconds)
        self.incarnation += 1
        self._backlog.clear()
        self._awake_at = 0.0
        for session in self.sessions:
            if session.connected:
                session.connected = False
                self.tell(session.caller, session.caller.disconnected)
        if lose_data:
            self.epoch += 1
            self.state = State(self.clock, self.micros)
            self.seen = set()
            self._tokens = {}

    def heal(self) -> None:
        """Be up and awake."""
        self._up_at = self._awake_at = 0.0
        self._catch_up()

    def _catch_up(self) -> None:
        if self._loop.time() >= self._awake_at:
            backlog, self._backlog = self._backlog, []
            for request in backlog:
                self.receive(*request)

    # --- What it does. ---

    def tell(self, caller: Caller, what: Callable[..., None], *args: object) -> None:
        """Send something to a client."""
        self._network.reply(caller.link, caller.context, what, *args)

    def receive(
        self,
        session: Session,
        incarnation: int,
        number: int,
        verb: str,
        body: tuple[Any, ...],
        copy: bool,
    ) -> None:
        """Execute a request and send the answer; a copy is executed without answer."""
        now = self._loop.time()
        if now < self._up_at:
            if not copy:
                self._turned_away.add((session.number, number))
                self.tell(session.caller, session.caller.refused, number)
            return
        if incarnation != self.incarnation or (session.number, number) in self._turned_away:
            return  # it was under way when the server died, or found nobody there
        if now < self._awake_at:
            self._backlog.append((session, incarnation, number, verb, body, copy))
            return
        if not session.over:
            session.connected = True
        result = self._execute(session, verb, body)
        if not copy:
            reply = Reply(self.clock(), result)
            self.tell(session.caller, session.caller.answered, number, reply)

    def _execute(self, session: Session, verb: str, body: tuple[Any, ...]) -> Any:
        try:
            return _VERBS[verb](self, session, *body)
        except LockError as error:
            return error

    def _claim(
        self, session: Session, claim: Claim, wanted: float | None
    ) -> int | Queued | TooLate:
        if wanted is not None and self.clock() > wanted:
            return TOO_LATE
        answer = self.state.claim(claim, session)
        if isinstance(answer, int):
            if self._tokens.get(claim.owner) == answer:
                self._note_kept(claim)
            else:
                self.note_minted(claim, answer)
        return answer

    def _renew(self, session: Session, claims: list[Claim]) -> list[Reason | None]:
        answers = self.state.renew(claims)
        for claim, lost in zip(claims, answers, strict=True):
            if lost is None:
                self._note_kept(claim)
        return answers

    def _release(self, session: Session, claim: Claim, linger: float) -> bool:
        known = claim.owner in self.seen
        self._history.add(Left(self._loop.time(), claim.owner, self.epoch, known))
        return self.state.release(claim, linger)

    # --- What it writes down. ---

    def note_minted(self, claim: Claim, token: int) -> None:
        """Write down that an owner was let in."""
        self.seen.add(claim.owner)
        self._tokens[claim.owner] = token
        lock = claim.key.rsplit("/", 1)[-1]
        now = self._loop.time()
        expires = now + claim.ttl / self.clock.rate
        self._history.add(Minted(now, lock, claim.owner, token, self.epoch, expires))

    def _note_kept(self, claim: Claim) -> None:
        """Write down what the table has made of it, which may be less than was asked for."""
        now = self._loop.time()
        holding = self.state._records[claim.key].holders[claim.owner]
        expires = now + (holding.expires - self.clock()) / self.clock.rate
        self._history.add(Kept(now, claim.owner, self.epoch, expires))

    def note_revoked(self, owner: str) -> None:
        """Write down that a holder was removed by force."""
        self._history.add(Revoked(self._loop.time(), owner))


_VERBS: dict[str, Callable[..., Any]] = {
    CLAIM: LockServer._claim,
    RENEW: LockServer._renew,
    RELEASE: LockServer._release,
    FORCE: lambda server, _, key, token: server.state.force(key, token),
    INSPECT: lambda server, _, key: server.state.inspect(key),
    LIST: lambda server, _, prefix: server.state.list(prefix),
    PING: lambda server, _: None,
}
