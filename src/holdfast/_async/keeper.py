"""The keeper: who holds what until when; it lets go, and it notices when time is over (S25).

Rule 1: the clock (`_ring`) never does I/O and never calls the user; deadlines are met whatever the
        worker, the engine or a callback is doing.
Rule 2: every held lease stands in exactly one valid slot, never later than its deadline; leases
        due at the same instant share a slot, so the heap holds instants, not leases.
Rule 3: only the keeper and the renewer change a lease's state, under the keeper's mutex; no engine
        verb is called under it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING
from weakref import ref

from .. import events
from .._concurrency import AsyncAlarm, AsyncEvent, AsyncThreadLock, ashield
from ..errors import EngineUnavailable, OutcomeUnknown
from ..model import Claim, Reason
from ..rules import renew_at
from .lease import HELD, LOST, RELEASED, AsyncLease

if TYPE_CHECKING:
    from .runtime import AsyncRuntime

RELEASE_MOST = 5.0  # S34
FEW = 64  # entries that are not worth sorting out


def nobody() -> None:
    """Stand for the lease of an owner that has asked and has no answer yet."""


class Hurried:
    """Stands for the same, and for the instant at which that lease is to be renewed."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> None:
        """There is no lease yet."""


class AsyncKeeper:
    """Keeps the leases of one client."""

    def __init__(self, runtime: AsyncRuntime) -> None:
        self.mutex = AsyncThreadLock()
        self._runtime = runtime
        self._clock = runtime.clock
        self._engine = runtime.engine
        self._unshielded = runtime.engine.instant or not runtime.engine.shielded
        # By owner, from the first request to the last answer: what is in somebody's hands, what
        # is on its way in (`nobody` yet), and what is on its way out.
        self.leases: dict[str, Callable[[], AsyncLease | None]] = {}
        self._heap: list[float] = []
        self._slots: dict[float, list[str]] = {}  # owners by the instant to look at them
        self._entries = 0  # in all slots, valid or not
        self._closed = False
        self._closing: list[AsyncLease] = []
        self._alarm = AsyncAlarm(runtime.clock, self._ring, "holdfast-clock")

    def keep(self, lease: AsyncLease, sent: float) -> bool:
        """Take charge of a new lease whose request was sent at `sent`; False after close."""
        claim = lease._claim
        with self.mutex:
            if self._closed:
                return False
            due = renew_at(sent, claim.ttl)
            before = self.leases.get(claim.owner)
            if type(before) is Hurried and before.at < due:
                due = before.at
            self.leases[claim.owner] = ref(lease)
            lease._renew_due = due
            slot = self._slots.get(due)
            if slot is not None and due <= lease._deadline:  # as a rule: what `schedule` would do
                lease._entry_at = due
                self._entries += 1
                slot.append(claim.owner)
            else:
                self.schedule(lease)
            if self._entries > FEW and self._entries > 4 * len(self.leases):
                self._compact()
        return True

    def find(self, owner: str) -> AsyncLease | None:
        """Return the lease of this owner if it is in somebody's hands."""
        reference = self.leases.get(owner)
        return None if reference is None else reference()

    def forget(self, owner: str) -> None:
        """Keep this owner's lease no longer."""
        self.leases.pop(owner, None)

    # --- Letting go. ---

    async def release(self, lease: AsyncLease) -> bool | None:
        """Give a lease back, in at most min(ttl/3, 5 s); then go on in the background (S34)."""
        claim = lease._claim
        began = self._clock() if self._runtime.listeners else 0.0
        try:
            with self.mutex:
                state = lease._state
                if state == HELD:
                    lease._state = RELEASED
            if state != HELD:
                return await self._release_lost(lease, began)
            if lease._options.at_least:
                answer: bool | None = await self._ask_to_release(lease)
            else:
                limit = claim.ttl / 3 if claim.ttl < 3 * RELEASE_MOST else RELEASE_MOST
                call = self._engine.release(claim, limit)
                tasks = self._runtime.tasks
                answer = await call if self._unshielded else await ashield(tasks, call)
        except (EngineUnavailable, OutcomeUnknown):
            answer = None
            self._runtime.renewer.give_back(claim, lease.token, self._linger(lease))
        except BaseException:  # interrupted: the release still happens
            with self.mutex:
                if lease._state == HELD:
                    lease._state = RELEASED
            lease._returned = True
            self._runtime.renewer.give_back(claim, lease.token, self._linger(lease))
            self._tell_released(lease, None, began)
            raise
        finally:
            self.leases.pop(claim.owner, None)
        if answer is False:  # the engine says it was not ours: that is a loss (S34)
            lease._returned = True
            self.lose(lease, Reason.EXPIRED, was=RELEASED)
        if self._runtime.listeners:
            self._tell_released(lease, answer, began)
        return answer

    async def _ask_to_release(self, lease: AsyncLease) -> bool:
        claim = lease._claim
        limit = min(claim.ttl / 3, RELEASE_MOST)
        call = self._engine.release(claim, limit, self._linger(lease))
        return await call if self._unshielded else await ashield(self._runtime.tasks, call)

    def _linger(self, lease: AsyncLease) -> float:
        """Return how much longer the lock must seem taken (S31)."""
        if not lease._options.at_least:
            return 0.0
        return max(0.0, lease._granted_at + lease._options.at_least - self._clock())

    async def _release_lost(self, lease: AsyncLease, began: float) -> bool | None:
        """Let the engine forget a lost lease, now that its body has left."""
        if lease._state != LOST or lease._returned:
            return False
        lease._returned = True
        if lease._reason is Reason.MAX_HOLD:  # the engine still has it, and can be reached (S15)
            answer = await self._ask_to_release(lease)
            self._tell_released(lease, answer, began)
            return answer
        self._runtime.renewer.give_back(lease._claim, lease.token)
        return False

    def abandon(self, lease_claim: Claim, token: int, leaked: bool) -> None:
        """Take note of a collected lease; called from `__del__`, so it only leaves a note."""
        self._runtime.renewer.abandoned.append((lease_claim, token, leaked))
        self._alarm.poke()

    # --- Loss. ---

    def lose(self, lease: AsyncLease, reason: Reason, was: int = HELD) -> None:
        """Turn a held lease into a lost one, for good, and tell everybody."""
        with self.mutex:
            if lease._state != was:
                return
            lease._reason = reason
            lease._state = LOST
            self.leases.pop(lease._claim.owner, None)
            if reason in (Reason.STOLEN, Reason.FORCED):
                lease._returned = True  # the engine has forgotten us already
            event, watchers = lease._lost, lease._watchers or ()
        if event is not None:
            event.set()
        for watcher in watchers:
            watcher()
        runtime = self._runtime
        if lease._options.on_lost is not None:
            runtime.callbacks.submit(lease._options.on_lost, lease, reason)
        if runtime.listeners:
            runtime.tell_lease(
                events.Lost,
                lease._claim,
                lease.token,
                reason=reason,
                held_for=self._clock() - lease._granted_at,
                max_hold=lease._options.max_hold,
            )

    def overdue(self, lease: AsyncLease) -> None:
        """Lose a lease whose deadline has passed, for the reason that fits (S17)."""
        if lease._deadline == lease._ends:
            reason = Reason.MAX_HOLD
        elif lease._suspended or lease._renew_due == math.inf:  # inf: a renewal is under way
            reason = Reason.UNREACHABLE
        else:
            reason = Reason.EXPIRED
        self.lose(lease, reason)
        if lease._reason is Reason.MAX_HOLD and not lease._returned:
            # The engine keeps it until the body leaves or one TTL is over, not less (S15).
            self._runtime.renewer.bid_farewell(lease._claim, lease.token)

    def notice(self, owner: str, reason: Reason) -> None:
        """Hear from the engine that an owner has lost its lock."""
        lease = self.find(owner)
        if lease is not None:
            self.lose(lease, reason)

    def make_event(self, lease: AsyncLease) -> None:
        """Make the event behind `lease.lost`."""
        with self.mutex:
            if lease._lost is None:
                lease._lost = AsyncEvent()
            if lease._state == LOST:
                lease._lost.set()

    def watch_loss(self, lease: AsyncLease, callback: Callable[[], None]) -> None:
        """Call `callback` when the lease is lost, or now if it is."""
        with self.mutex:
            lost = lease._state == LOST
            if lease._watchers is None:
                lease._watchers = []
            lease._watchers.append(callback)
        if lost:
            callback()

    # --- The clock. ---

    def schedule(self, lease: AsyncLease) -> None:
        """Look at this lease again when it is due for renewal or over; the caller has the mutex."""
        at = lease._renew_due
        if at > lease._deadline:
            at = lease._deadline
        if at == lease._entry_at:
            return
        lease._entry_at = at
        self._entries += 1
        slot = self._slots.get(at)
        if slot is not None:
            slot.append(lease._claim.owner)
            return
        # In this order an interrupt leaves an instant too many, never a slot that nobody opens.
        heappush(self._heap, at)
        self._alarm.set(at)
        self._slots[at] = [lease._claim.owner]

    def hasten(self, owner: str, at: float) -> None:
        """Hear from the engine that a renewal at that instant does more than a later one."""
        with self.mutex:
            lease = self.find(owner)
            if lease is None:
                if self.leases.get(owner) is nobody:
                    self.leases[owner] = Hurried(at)
            elif lease._state == HELD and at < lease._renew_due < math.inf:
                lease._renew_due = at
                self.schedule(lease)

    def _compact(self) -> None:
        """Throw out the owners that have let go since: most leases are short."""
        for slot in self._slots.values():
            slot[:] = [owner for owner in slot if owner in self.leases]
        self._entries = sum(len(slot) for slot in self._slots.values())

    def _ring(self) -> None:
        now = self._clock()
        over: list[AsyncLease] = []
        due: list[AsyncLease] = []
        with self.mutex:
            heap = self._heap
            while heap and heap[0] <= now:
                at = heappop(heap)
                slot = self._slots.pop(at, [])
                self._entries -= len(slot)
                for owner in slot:
                    lease = self.find(owner)
                    if lease is None or lease._entry_at != at or lease._state != HELD:
                        continue  # let go, or moved to another instant
                    if now >= lease._deadline:
                        over.append(lease)
                        continue
                    if now >= lease._renew_due:
                        lease._renew_due = math.inf
                        due.append(lease)
                    self.schedule(lease)
            if heap:
                self._alarm.set(heap[0])
        for lease in over:
            self.overdue(lease)
        self._runtime.renewer.hand_over(due)

    # --- The end. ---

    def close(self) -> list[AsyncLease]:
        """Keep nothing more, and return what was held until now, lost from now on.

        What stays in `leases` is on its way in or out, and leaves by itself.
        """
        with self.mutex:
            self._closed = True
            references = list(self.leases.values())
        found = [lease for reference in references if (lease := reference()) is not None]
        # Kept before they are lost: a close() that was interrupted is repeated with all of them.
        self._closing = [*self._closing, *(lease for lease in found if lease._state == HELD)]
        for lease in self._closing:
            self.lose(lease, Reason.CLOSED)
            lease._returned = True
        return self._closing

    def stop(self) -> None:
        """Stop the clock."""
        self._alarm.stop()

    def disown(self) -> None:
        """In a forked child: nothing of this is ours, and no callback is called for it (S29)."""
        for lease in [lease for found in self.leases.values() if (lease := found()) is not None]:
            lease._reason = Reason.FORKED
            lease._state = LOST
            lease._returned = True
            lease._lost = None  # made anew when asked for: its lock may be one of the parent's
        self.leases = {}
        self._closed = True

    def _tell_released(self, lease: AsyncLease, outcome: bool | None, began: float) -> None:
        if self._runtime.listeners:
            now = self._clock()
            self._runtime.tell_lease(
                events.Released,
                lease._claim,
                lease.token,
                outcome=outcome,
                held_for=now - lease._granted_at,
                took=now - (began or now),  # 0: nobody listened yet
                max_hold=lease._options.max_hold,
                reason=lease._reason,
            )
