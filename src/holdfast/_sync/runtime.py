"""(Generated from _async/runtime.py by tools/unasync.py: do not edit.) What the parts of one client share: engine, clock, randomness, listeners; opened on first use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import time
from typing import Any

from .._concurrency import Callbacks, Home, Listener
from ..clocks import Clock
from ..errors import ClientClosed
from ..events import Event, LeaseEvent, NodeEvent
from ..model import Claim, Reason
from .engine import Engine
from .keeper import Keeper
from .renewal import Renewer

OWNERS = 64  # ids made at once

_NOWHERE = object()
_CLOSED = object()
_FORKED = object()


class Runtime:
    """One per client. `ready()` is the door every public call goes through."""

    def __init__(
        self,
        engine: Engine,
        *,
        namespace: str,
        domain: str,
        connect_timeout: float,
        clock: Clock,
        entropy: Callable[[int], bytes],
        chance: Callable[[], float],
    ) -> None:
        self.engine = engine
        self.namespace = namespace
        self.domain = domain
        self.connect_timeout = connect_timeout
        self.clock = clock
        self._entropy = entropy
        self._owners: deque[str] = (
            deque()
        )  # made in advance: one by one they cost a system call each
        self.chance = chance
        self.listeners: list[Listener] = []
        self.tasks: set[Any] = set()  # shielded calls under way
        self.entered: dict[object, Any] = {}  # re-enterable leases by (task, record, path)
        self.home: object = _NOWHERE
        self.to_wind_up = False
        self.keeper: Keeper
        self.renewer: Renewer
        self.callbacks: Callbacks

    def new_owner(self) -> str:
        """Return 128 random bits that nobody had before (S1)."""
        try:
            return self._owners.pop()
        except IndexError:
            data = self._entropy(16 * OWNERS).hex()
            self._owners.extend(data[at : at + 32] for at in range(32, len(data), 32))
            return data[:32]

    def ready(self) -> None:
        """Open on first use; refuse a closed, forked or foreign client."""
        if self.home is not Home.here():
            self._move_in()

    def _move_in(self) -> None:
        if self.home is _CLOSED:
            raise ClientClosed(
                f"The client of {self.engine.location} is closed; make a new one.",
                engine=self.engine.location,
            )
        if self.home is not _NOWHERE:
            forked = self.home is _FORKED
            why = "was made before a fork" if forked else "belongs to another event loop"
            raise ClientClosed(
                f"The client of {self.engine.location} {why}: {Home.hint}.",
                engine=self.engine.location,
            )
        self.callbacks = Callbacks("holdfast-callbacks")
        self.keeper = Keeper(self)
        self.renewer = Renewer(self)
        self.engine.notices(self._notice)
        self.engine.hastens(self._hasten)
        self.engine.reports(self._hear_report)
        self.home = Home.here()

    @property
    def untouched(self) -> bool:
        """Whether it has neither been used nor closed."""
        return self.home is _NOWHERE

    @property
    def open(self) -> bool:
        """Whether it has been used and not closed."""
        return self.home not in (_NOWHERE, _CLOSED, _FORKED)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.home is _CLOSED

    def _notice(self, owner: str, reason: Reason) -> None:
        Home.post(self.home, self.keeper.notice, owner, reason)

    def _hasten(self, owner: str, at: float) -> None:
        Home.post(self.home, self.keeper.hasten, owner, at)

    def _hear_report(self, kind: type[NodeEvent], /, **details: Any) -> None:
        Home.post(self.home, lambda: self.tell(kind, "", **details))

    def tell(self, kind: type[Event], name: str, **details: Any) -> None:
        """Hand an event to every listener; it is not even made when there is none."""
        if self.listeners:
            details["name"] = name
            self._hand_over(kind, details)

    def tell_lease(self, kind: type[LeaseEvent], claim: Claim, token: int, **details: Any) -> None:
        """The same for what happens to a lease."""
        if self.listeners:
            details["name"], details["owner"], details["label"] = (
                claim.name,
                claim.owner,
                claim.label,
            )
            details["token"] = token
            self._hand_over(kind, details)

    def _hand_over(self, kind: type[Event], details: dict[str, Any]) -> None:
        details["engine"] = self.engine.location
        details["namespace"] = self.namespace
        details["at"] = time()
        for listener in self.listeners:
            listener.hear(kind, details)

    def shut(self) -> bool:
        """Refuse all further use; say whether there is anything left to wind up."""
        if self.open:
            self.to_wind_up = True  # until close() has come to its end: it may be interrupted
        self.home = _CLOSED
        return self.to_wind_up

    def after_fork(self) -> None:
        """In the child: the leases are the parent's, the threads are gone (S29)."""
        if self.open:
            self.keeper.disown()
        if self.home is not _CLOSED:
            self.home = _NOWHERE if Home.survives_fork or not self.open else _FORKED
        self.tasks = set()
        self.entered = {}
        self._owners = deque()  # the parent goes on with those
        self.engine.after_fork()
