"""(Generated from _async/renewal.py by tools/unasync.py: do not edit.) The renewer: one worker per client that renews what is due and gives back what was dropped.

Rule 1: what is due at the same time is renewed in one request per engine.
Rule 2: a renewal counts only if it is answered before the deadline and the lease's TTL is still the
        one that was sent; an answer that does not come changes nothing (S9).
Rule 3: no error ends the worker; an unanswered renewal is repeated until the deadline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import events, rules
from .._concurrency import Bell, Worker, logger
from ..errors import EngineUnavailable, LeaseLost, OutcomeUnknown
from ..model import UNKNOWN, Claim, Outcome, Reason, Renewal
from .chores import Chores
from .lease import HELD, Lease

if TYPE_CHECKING:
    from .runtime import Runtime

BATCH = 512  # leases renewed in one request
ASK_MOST = 5.0  # seconds an extend waits for its answer


class Renewer:
    """Talks to the engine in the background, for one client."""

    def __init__(self, runtime: Runtime) -> None:
        self.abandoned: deque[tuple[Claim, int, bool]] = deque()  # collected: claim, token, leaked
        self._runtime = runtime
        self._clock = runtime.clock
        self._keeper = runtime.keeper
        self._due: list[Lease] = []
        self._stopping = False
        self._bell = Bell()
        self._worker = Worker(self._work, "holdfast-worker")
        self._chores = Chores(runtime)

    # --- Orders, from whatever thread. ---

    def hand_over(self, due: list[Lease]) -> None:
        """Renew these, and see to what was dropped."""
        if due:
            with self._keeper.mutex:
                self._due.extend(due)
        if due or self.abandoned:
            self._wake()

    def give_back(self, claim: Claim, token: int = 0, linger: float = 0.0) -> None:
        """Release in the background a claim whose outcome nobody waits for any more."""
        self._chores.add(claim, token, linger)
        self._wake()

    def bid_farewell(self, claim: Claim, token: int) -> None:
        """Renew once more, and release one TTL later (S15)."""
        self._chores.add_farewell(claim, token)
        self._wake()

    def _wake(self) -> None:
        if not self._stopping:
            self._worker.start()
            self._bell.ring()

    # --- The worker. ---

    def _work(self) -> None:
        while not self._stopping:
            self._bell.wait(self._chores.next_in())
            self._adopt()
            with self._keeper.mutex:
                due, self._due = self._due, []
            for start in range(0, len(due), BATCH):
                self._renew(due[start : start + BATCH])
            due.clear()  # a dropped lease must not live on in a sleeping worker
            self._chores.run()

    def _adopt(self) -> None:
        while self.abandoned:
            claim, token, leaked = self.abandoned.popleft()
            self._keeper.forget(claim.owner)
            self._chores.add(claim, token)
            if leaked:
                self._runtime.tell_lease(events.Leaked, claim, token)

    def _renew(self, leases: Sequence[Lease]) -> None:
        claims = [lease._claim for lease in leases]
        sent = self._clock()
        error = ""
        try:
            limit = min(claim.ttl for claim in claims) / 3
            answers = self._runtime.engine.renew(claims, limit)
            if len(answers) != len(claims):
                raise ValueError(f"{len(claims)} claims were renewed with {len(answers)} answers")
        except Exception as problem:  # whatever it is, the next try may do better
            if not isinstance(problem, (EngineUnavailable, OutcomeUnknown)):
                logger.exception("A renewal failed unexpectedly; it is repeated.")
            error = str(problem)
            answers = [UNKNOWN] * len(claims)
        for lease, claim, answer in zip(leases, claims, answers, strict=True):
            self._apply(lease, claim, answer, sent, error, scheduled=True)

    def _apply(
        self,
        lease: Lease,
        claim: Claim,
        answer: Renewal,
        sent: float,
        error: str = "",
        scheduled: bool = False,
    ) -> None:
        """Let the answer to a renewal count for what it is worth."""
        if answer.outcome is Outcome.LOST:
            self._keeper.lose(lease, answer.reason)
            return
        now = self._clock()
        renewed = answer.outcome is Outcome.RENEWED
        with self._keeper.mutex:
            if lease._state != HELD or lease._claim is not claim:
                return
            late = now >= lease._deadline  # lost is final, however the answer reads
            before, was_suspended = lease._deadline - now, lease._suspended
            remaining = lease._not_after - now  # whether or not max_hold ends earlier
            if renewed and not late:
                lease.confirmed(answer.not_after, rules.renew_at(sent, claim.ttl))
            else:
                pause = rules.retry_renewal(lease._attempt, self._runtime.chance(), claim.ttl)
                lease.unanswered(now + pause)
            self._keeper.schedule(lease)
        if late:
            self._keeper.overdue(lease)
            return
        if lease._suspended != was_suspended:
            self._tell_suspension(lease, before, error)
        if renewed and self._runtime.listeners:
            self._runtime.tell_lease(
                events.Renewed,
                claim,
                lease.token,
                ttl=claim.ttl,
                remaining=remaining,
                scheduled=scheduled,
            )

    def _tell_suspension(self, lease: Lease, remaining: float, error: str) -> None:
        runtime, options = self._runtime, lease._options
        if lease._suspended:
            callback = options.on_suspended
            runtime.tell_lease(
                events.Suspended, lease._claim, lease.token, remaining=remaining, error=error
            )
        else:
            callback = options.on_resumed
            runtime.tell_lease(events.Resumed, lease._claim, lease.token)
        if callback is not None:
            runtime.callbacks.submit(callback, lease)

    # --- What the holder asks for. ---

    def confirm(self, lease: Lease, margin: float) -> None:
        """Renew now, and return if more than `margin` seconds are left then."""
        claim = lease._claim
        where = self._runtime.engine.location
        most = rules.validity(0.0, claim.ttl)
        if margin >= most:
            raise ValueError(
                f"margin={margin:g} s can never be confirmed: a ttl of {claim.ttl:g} s gives at "
                f"most {most:g} s."
            )
        sent = self._clock()
        if lease._ends is not None and lease._ends - sent <= margin:
            raise LeaseLost(
                f"The lease of {lease.name!r} on {where} cannot last {margin:g} s more: its "
                "max_hold ends before; do the rest under a new lease.",
                name=lease.name,
                engine=where,
                token=lease.token,
                reason=Reason.MAX_HOLD,
            )
        problem: Exception | None = None
        try:
            limit = max(0.001, min(lease._deadline - sent, claim.ttl / 3))
            answer = (self._runtime.engine.renew([claim], limit))[0]
        except (EngineUnavailable, OutcomeUnknown) as error:
            answer, problem = UNKNOWN, error
        self._apply(lease, claim, answer, sent, str(problem or ""))
        if not lease.held:
            raise lease.error()
        if lease._deadline - self._clock() <= margin:
            raise EngineUnavailable(
                f"That the lease of {lease.name!r} on {where} lasts {margin:g} s more cannot be "
                "confirmed now; it is still held, try again.",
                name=lease.name,
                engine=where,
            ) from problem

    def extend(self, lease: Lease, ttl: float) -> None:
        """Set the time left to `ttl`; until the engine agrees, count on the shorter one (S14)."""
        where = self._runtime.engine.location
        claim = lease._claim._replace(ttl=ttl, revision=lease._claim.revision + 1)
        sent = self._clock()
        with self._keeper.mutex:
            lease.shorten(claim, rules.validity(sent, ttl))
            self._keeper.schedule(lease)
        try:
            answer = (self._runtime.engine.renew([claim], min(ttl / 3, ASK_MOST)))[0]
        except (EngineUnavailable, OutcomeUnknown) as problem:
            self._apply(lease, claim, UNKNOWN, sent, str(problem))
            raise OutcomeUnknown(
                f"Whether {lease.name!r} on {where} was extended to {ttl:g} s is unknown, there "
                "was no answer; the lease counts on the shorter time.",
                name=lease.name,
                engine=where,
            ) from problem
        self._apply(lease, claim, answer, sent)
        if not lease.held:
            raise lease.error()

    # --- The end. ---

    def close(self, leases: Sequence[Lease], timeout: float) -> None:
        """Give these back and finish all chores within `timeout` seconds; stop the worker."""
        end = self._clock() + timeout
        for lease in leases:
            self._chores.add(lease._claim, lease.token)
        self._stopping = True
        self._bell.ring()
        self._worker.join(max(0.0, end - self._clock()))
        self._adopt()
        self._chores.finish(end)
