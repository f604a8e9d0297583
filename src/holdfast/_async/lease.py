"""The lease: what you hold. It looks at the clock whenever it is asked.

Rule 1: held -> released or lost; both are final.
Rule 2: `held` is true only before the deadline, which is never later than what the engine granted.
Rule 3: only the keeper and the renewer change it, under the keeper's mutex; else it only shows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from .._concurrency import AsyncEvent
from ..errors import LeaseLost, NotSupported
from ..model import Claim, Mode, Reason, Seconds, check_ttl, seconds
from .tenure import AsyncTenure

if TYPE_CHECKING:
    from .runtime import AsyncRuntime

HELD, RELEASED, LOST = range(3)


class LeaseOptions(NamedTuple):
    """How a lock wants its leases treated."""

    max_hold: float | None = None
    on_lost: Callable[[Any, Reason], object] | None = None
    on_suspended: Callable[[Any], object] | None = None
    on_resumed: Callable[[Any], object] | None = None
    cancel_on_loss: bool = True
    reentrant: bool = False
    at_least: float = 0.0
    singleton: bool = False  # who comes second is skipped, not kept waiting


class AsyncLease:
    """One hold of a lock: token, deadline, and the way to give it back.

    Renewed in the background until released, lost, or `max_hold` is reached. `held` turns false
    before the engine could grant the lock to another, under the faults that
    `client.guarantees.exclusive` names; a resource that must never see two writers checks `token`.
    """

    # Most leases never change these: they are set on the instance when they do.
    _ends: float | None = None  # the instant of max_hold
    _state = HELD
    _reason: Reason | None = None
    _lost: AsyncEvent | None = None  # made when first asked for
    _watchers: list[Callable[[], None]] | None = None
    _tenures: list[AsyncTenure] | None = None
    _suspended = False
    _returned = False  # the claim of a lost lease was given back, or must not be
    _nested = 0  # re-entries still open
    _left = False  # its holder is done with it, whatever became of it
    _attempt = 0  # renewals without answer since the last one with
    _renew_due = 0.0
    _entry_at = 0.0  # the instant of the one slot of the keeper's in which this lease counts

    def __init__(
        self,
        runtime: AsyncRuntime,
        claim: Claim,
        token: int,
        not_after: float,
        granted_at: float,
        options: LeaseOptions,
    ) -> None:
        self._runtime = runtime
        self._claim = claim
        self.token = token
        self._options = options
        self._granted_at = granted_at
        self._not_after = self._deadline = not_after
        if options.max_hold is not None:
            self._ends = granted_at + options.max_hold
            self._deadline = min(not_after, self._ends)

    @property
    def name(self) -> str:
        """The lock's name, as it was asked for."""
        return self._claim.name

    @property
    def mode(self) -> Mode:
        """S (shared) or X (exclusive)."""
        return self._claim.mode

    @property
    def limit(self) -> int:
        """How many may hold it at once, if it is a semaphore; 0 for any other lock."""
        return self._claim.limit

    @property
    def owner(self) -> str:
        """The random id of this one hold."""
        return self._claim.owner

    @property
    def ttl(self) -> float:
        """Seconds the engine keeps the lock without news from us."""
        return self._claim.ttl

    @property
    def label(self) -> str:
        """Who holds, for people."""
        return self._claim.label

    @property
    def domain(self) -> str:
        """The token's origin: tokens of different domains are never compared."""
        return self._runtime.domain

    @property
    def held(self) -> bool:
        """Whether the lock can be relied on at this instant, by the clock."""
        if self._state != HELD:
            return False
        if self._runtime.clock() < self._deadline:
            return True
        self._runtime.keeper.overdue(self)
        return False

    @property
    def released(self) -> bool:
        """Whether its holder gave it back."""
        return self._state == RELEASED

    @property
    def left(self) -> bool:
        """Whether its holder has let it go for the last time, held or lost."""
        return self._left

    @property
    def nested(self) -> bool:
        """Whether the same task has entered it more than once."""
        return self._nested > 0

    @property
    def suspended(self) -> bool:
        """Whether the last renewal had no answer while the lease is still held."""
        return self._suspended and self.held

    def remaining(self) -> float:
        """Return the seconds that are still confirmed; 0 when it is over."""
        return max(0.0, self._deadline - self._runtime.clock()) if self.held else 0.0

    @property
    def lost(self) -> AsyncEvent:
        """An event that is set when the lease is lost; never by releasing it yourself."""
        if self._lost is None:
            self._runtime.keeper.make_event(self)
            assert self._lost is not None
        return self._lost

    @property
    def lost_reason(self) -> Reason | None:
        """Why it was lost; None while it is not."""
        return self._reason

    async def ensure_held(self, margin: Seconds = 0.0) -> None:
        """Return if the lease is held for `margin` more seconds, asking the engine if need be.

        Raises LeaseLost when it is over, EngineUnavailable when it cannot be confirmed now.
        """
        need = seconds(margin, "margin")
        if not self.held:
            raise self.error()
        if self._deadline - self._runtime.clock() <= need:
            await self._runtime.renewer.confirm(self, need)

    async def extend(self, ttl: Seconds | None = None) -> None:
        """Set the time left to `ttl` (the lock's own if None) from now; it never adds or revives.

        Raises LeaseLost when it is over, OutcomeUnknown when the engine gave no answer: the lease
        then counts on the shorter of the two. Where a session decides, its TTL cannot be changed.
        """
        engine = self._runtime.engine
        wanted = self.ttl if ttl is None else check_ttl(ttl, engine.guarantees)
        if not self.held:
            raise self.error()
        if wanted != self.ttl and engine.guarantees.expiry == "session":
            raise NotSupported(
                f"The lease of {self.name!r} on {engine.location} cannot be extended to "
                f"{wanted:g} s: it lasts as long as a session of {self.ttl:g} s; take the lock "
                "with another ttl instead.",
                name=self.name,
                engine=engine.location,
            )
        await self._runtime.renewer.extend(self, wanted)

    async def release(self) -> bool | None:
        """Give the lock back; harmless when repeated.

        True: it was ours and is free now. False: it was already gone (or this was an inner release
        of a re-entered lease). None: no answer yet, it is repeated in the background.
        """
        if self._nested > 0:
            self._nested -= 1
            return False
        self._left = True
        return await self._runtime.keeper.release(self)

    def error(self) -> LeaseLost:
        """Return the error that says why this lease cannot be relied on."""
        where = f"on {self._runtime.engine.location}"
        if self._state == RELEASED:
            why = "you released it"
        else:
            why = _WHY[self._reason or Reason.EXPIRED]
        return LeaseLost(
            f"The lease of {self.name!r} {where} with token {self.token} is over: {why}.",
            name=self.name,
            engine=self._runtime.engine.location,
            token=self.token,
            reason=self._reason,
        )

    def watch_loss(self, callback: Callable[[], None]) -> None:
        """Call `callback`, which must not block, when the lease is lost; now if it is."""
        self._runtime.keeper.watch_loss(self, callback)

    # What the keeper and the renewer do to it, under the keeper's mutex.

    def confirmed(self, not_after: float, renew_due: float) -> None:
        """Rely on it until `not_after`, or the end of max_hold."""
        self._not_after = max(self._not_after, not_after)
        self._deadline = self._not_after
        if self._ends is not None:
            self._deadline = min(self._not_after, self._ends)
        self._renew_due = renew_due
        self._attempt = 0
        self._suspended = False

    def unanswered(self, renew_due: float) -> None:
        """Take note of a renewal without answer: it changes nothing but when to ask again."""
        self._renew_due = renew_due
        self._attempt += 1
        self._suspended = True

    def shorten(self, claim: Claim, not_after: float) -> None:
        """Go on with another TTL, relying on the shorter of the two."""
        self._claim = claim
        self._not_after = min(self._not_after, not_after)
        self._deadline = min(self._deadline, self._not_after)

    @property
    def leaf(self) -> AsyncLease:
        """What `current_lease()` shows inside: this lease."""
        return self

    def nest(self) -> None:
        """Count one more entry of the same task: one release less will count (S27)."""
        self._nested += 1

    async def __aenter__(self) -> AsyncLease:
        if not self.held:
            raise self.error()
        tenure = AsyncTenure(self, self._options.cancel_on_loss)
        if self._tenures is None:
            self._tenures = []
        self._tenures.append(tenure)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._tenures
        await self._tenures.pop().leave(error)

    def __repr__(self) -> str:
        state = "held" if self.held else self._reason or "released"
        return f"<{type(self).__name__} {self.name!r} token={self.token} {state}>"

    def __del__(self) -> None:
        # May run in any thread, even inside another method of ours: takes no lock (S30).
        if self._state == RELEASED or self._returned:
            return
        if "_options" not in self.__dict__:
            return  # interrupted while it was made: whoever made it gives its claim back
        leaked = self._state == HELD
        self._runtime.keeper.abandon(self._claim, self.token, leaked)
        if leaked:  # last, because a warning may be an error
            warnings.warn(
                f"The lease of {self.name!r} with token {self.token} was dropped without release; "
                "use 'with', or keep it and call release().",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )


_WHY = {
    Reason.EXPIRED: "it was not renewed in time and has expired; stop, check what was done",
    Reason.UNREACHABLE: "the engine could not be reached until its time was over; stop, check "
    "what was done",
    Reason.STOLEN: "another owner has the lock; stop, check what was done",
    Reason.FORCED: "somebody broke the lock by force_release; stop, check what was done",
    Reason.MAX_HOLD: "it was held for max_hold; do the rest under a new lease",
    Reason.FORKED: "it belongs to the parent process; take a new one in the child",
    Reason.CLOSED: "its client was closed",
}
