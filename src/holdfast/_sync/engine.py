"""(Generated from _async/engine.py by tools/unasync.py: do not edit.) The engine interface: few verbs, each idempotent for the claim's owner.

Rule 1: a verb that cannot be answered within its `timeout` raises: EngineUnavailable if the request
        certainly did nothing, OutcomeUnknown if it may have. It never retries by itself.
Rule 2: `claim` repeated by an owner that holds gives the same token and a fresh lease; `renew` and
        `release` act only for the owner; `renew` never creates and never revives.
Rule 3: `not_after` of a Grant or Renewal comes from `rules.validity` and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from ..events import NodeEvent
from ..model import Claim, Grant, Guarantees, Queued, Reason, Renewal, Snapshot

Notice = Callable[[str, Reason], None]
Haste = Callable[[str, float], None]


class Report(Protocol):
    """Hears what happens to servers, as an event without its common part."""

    def __call__(self, kind: type[NodeEvent], /, **details: Any) -> None: ...


class Engine(ABC):
    """How locks are kept in one place; wrappers are engines too."""

    family: ClassVar[str]  # the origin of tokens: redis, sqlite, …
    instant: ClassVar[bool] = False  # no verb but `wait` ever suspends: needs no shield
    # Whether a release that is under way must outlive a cancel of its caller. An engine whose
    # releases take effect all the same when they are sent again in the background saves a task.
    shielded: ClassVar[bool] = True
    # Whether a place in the queue ends by itself one TTL after the last news from its owner. Where
    # it does not, its withdrawal is repeated until there is an answer.
    places_expire: ClassVar[bool] = True
    # Options that may also stand in the query of a URL, with what reads them.
    url_options: ClassVar[Mapping[str, Callable[[str], Any]]] = {}
    guarantees: Guarantees
    location: str  # where, for messages: never with a password

    @abstractmethod
    def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """Ask for the lock, and for a place in the queue if `claim.queue`; never wait.

        It is wanted for `timeout` seconds: an engine that can tell refuses later copies (S6).
        """

    @abstractmethod
    def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """Wait for a pushed grant; None = worth asking again, at the latest after `timeout`."""

    @abstractmethod
    def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """Set the time left of each to its TTL, in one request; answers in the same order."""

    @abstractmethod
    def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """End the claim, whether granted, queued or unknown; say whether it held the lock.

        An owner that is not known leaves a tombstone: a late copy of its claim is refused (S6).
        With `linger` the lock stays taken, by nobody, for that many seconds more (S31).
        """

    @abstractmethod
    def inspect(self, key: str, timeout: float) -> Snapshot:
        """Show one record; an unknown one is empty, not an error."""

    @abstractmethod
    def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """Show every record in use whose key starts with `prefix`."""

    @abstractmethod
    def force(self, key: str, token: int | None, timeout: float) -> int:
        """Remove all holders, or the one with that token; the queue stays; return how many."""

    @abstractmethod
    def ping(self, timeout: float) -> None:
        """Return if the engine answers."""

    @abstractmethod
    def notices(self, callback: Notice) -> None:
        """Tell `callback(owner, reason)` of losses the engine hears of by push."""

    def hastens(self, callback: Haste) -> None:
        """Tell `callback(owner, at)` where a renewal at that instant does more than a later one."""
        return None

    def reports(self, callback: Report) -> None:
        """Tell `callback` of what happens to servers; an engine without any says nothing."""
        return None

    def watch(self, key: str, callback: Callable[[], None]) -> Callable[[], None] | None:
        """Call back whenever the record changes, until the returned function is called.

        None = the engine has no push for that: the caller inspects now and then.
        """
        return None

    @abstractmethod
    def stop_waiting(self) -> None:
        """Make every `wait` in progress, and every later one, return None at once."""

    @abstractmethod
    def close(self) -> None:
        """Close connections; what is held stays with the server until its TTL."""

    @abstractmethod
    def after_fork(self) -> None:
        """Drop the parent's connections without a goodbye; connect anew when next used."""
