"""The one way to get a lock: ask, wait, ask again, until granted or the time is over.

Rule 1 (S1): one attempt has one owner id, made before the first byte is sent.
Rule 2 (S7): None only if the engine said busy, and only after our place in the queue is withdrawn;
             no answer in time is EngineUnavailable.
Rule 3: however this ends without a lease (error, cancel, Ctrl-C), the claim is withdrawn in the
        background: an outcome nobody learnt of holds nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import events, rules
from .._concurrency import AsyncHome, asleep, logger
from ..errors import ClientClosed, EngineUnavailable, LockMismatch, OutcomeUnknown
from ..model import Claim, Grant, Queued, Terms
from .keeper import nobody
from .lease import AsyncLease, LeaseOptions

if TYPE_CHECKING:
    from .runtime import AsyncRuntime

LONG_WAIT = 10.0  # in TTLs
BRIEF = 0.02  # seconds in which a last try learns nothing new about why there is no answer


async def acquire(
    runtime: AsyncRuntime, terms: Terms, options: LeaseOptions, timeout: float
) -> AsyncLease | None:
    """Return a lease, or None if somebody else still has the lock after `timeout` seconds."""
    if runtime.home is not AsyncHome.here():
        runtime.ready()
    clock = runtime.clock
    # The constructor of a named tuple costs as much again as the tuple.
    claim = tuple.__new__(Claim, (*terms, runtime.new_owner(), timeout > 0.0, 0))
    started = sent = clock()
    leases = runtime.keeper.leases
    try:
        leases[claim.owner] = nobody  # on its way: close() waits until this is a lease, or gone
        answer: Grant | Queued | None
        error: Exception | None = None
        try:
            limit = runtime.connect_timeout
            if 0.0 < timeout < limit:
                limit = timeout
            answer = await runtime.engine.claim(claim, limit)
        except (EngineUnavailable, OutcomeUnknown) as problem:
            if not claim.queue:
                raise _unanswered(runtime, claim, started, problem) from problem
            answer, error = None, problem
        now = started if runtime.engine.instant else clock()
        if type(answer) is not Grant or now >= answer.not_after:
            if isinstance(answer, Queued) and not claim.queue:
                leases.pop(claim.owner, None)
                _missed(runtime, claim, "skipped" if options.singleton else "busy", started)
                return None
            granted = await _Patience(runtime, claim, started, timeout).persist(answer, error)
            if granted is None:
                leases.pop(claim.owner, None)
                _missed(runtime, claim, "timeout", started)
                return None
            answer, sent = granted
            now = clock()
        lease = AsyncLease(runtime, claim, answer.token, answer.not_after, now, options)
        if not runtime.keeper.keep(lease, sent):
            lease._returned = True
            raise _closed(runtime, claim)
    except LockMismatch:
        leases.pop(claim.owner, None)
        _missed(runtime, claim, "error", started, "mismatch")
        raise  # a refusal: nothing is held or queued
    except BaseException as problem:
        runtime.renewer.give_back(claim)
        leases.pop(claim.owner, None)
        _missed(runtime, claim, "error", started, str(problem))
        raise
    if runtime.listeners:
        runtime.tell_lease(
            events.Acquired,
            claim,
            lease.token,
            mode=claim.mode,
            ttl=claim.ttl,
            waited=(clock() if runtime.engine.instant else now) - started,
        )
    return lease


class _Patience:
    """One attempt that was not granted at once."""

    def __init__(self, runtime: AsyncRuntime, claim: Claim, started: float, timeout: float) -> None:
        self._runtime = runtime
        self._claim = claim
        self._started = started
        self._give_up = started + timeout
        self._heard = started  # when the engine last answered
        self._was_busy = False  # it has said that somebody else has the lock
        self._warned = False

    async def persist(
        self, answer: Grant | Queued | None, error: Exception | None
    ) -> tuple[Grant, float] | None:
        """Wait and ask again; return the grant and when it was asked for, or None for busy."""
        runtime = self._runtime
        if isinstance(answer, Queued):
            runtime.tell(
                events.Waiting,
                self._claim.name,
                mode=self._claim.mode,
                owner=self._claim.owner,
                position=answer.position,
                holder=_describe(answer),
            )
        return await self._loop(answer, error)

    async def _loop(
        self, answer: Grant | Queued | None, error: Exception | None
    ) -> tuple[Grant, float] | None:
        runtime, claim, clock = self._runtime, self._claim, self._runtime.clock
        attempt = 0
        while True:
            if runtime.closed:
                raise _closed(runtime, claim)
            sent = now = clock()
            if isinstance(answer, Queued):
                self._heard, self._was_busy, attempt = now, True, 0
                if now >= self._give_up:
                    await self._withdraw()
                    return None
                self._warn_once(now, answer)
                try:
                    grant = await runtime.engine.wait(claim, answer, self._nap(now, answer))
                except (EngineUnavailable, OutcomeUnknown) as problem:
                    answer, error = None, problem
                    continue
                self._heard = clock()  # silence is counted from the next request
                if grant is not None and grant.not_after - clock() >= claim.ttl / 2:
                    return grant, now
                if grant is None and clock() >= self._give_up:
                    continue
                if runtime.closed:
                    continue
            else:
                left = self._answer_due() - now
                if left <= 0 and self._was_busy:
                    await self._withdraw()
                    return None
                if left <= 0:
                    raise _unanswered(runtime, claim, self._started, error) from error
                if error is not None:
                    await asleep(min(rules.backoff(attempt, runtime.chance()), left))
                    attempt += 1
            sent = clock()
            try:
                limit = min(runtime.connect_timeout, max(0.001, self._answer_due() - sent))
                answer, error = await runtime.engine.claim(claim, limit), None
            except (EngineUnavailable, OutcomeUnknown) as problem:
                if error is None or limit > BRIEF:  # else the earlier one says more
                    error = problem
                answer = None
                continue
            if isinstance(answer, Grant) and clock() < answer.not_after:
                return answer, sent

    def _answer_due(self) -> float:
        """Return when an engine that stays silent counts as unavailable (S7)."""
        if self._started < self._give_up < math.inf:
            return self._give_up
        return self._heard + self._runtime.connect_timeout

    def _nap(self, now: float, queued: Queued) -> float:
        nap = min(queued.retry_in, self._give_up - now)
        if self._give_up == math.inf and not self._warned:
            nap = min(nap, self._started + LONG_WAIT * self._claim.ttl - now)
        return max(0.0, nap)

    async def _withdraw(self) -> None:
        """Leave the queue, so that None is the truth; silence here is EngineUnavailable (S7)."""
        try:
            await self._runtime.engine.release(self._claim, self._runtime.connect_timeout)
        except (EngineUnavailable, OutcomeUnknown) as problem:
            raise _unanswered(self._runtime, self._claim, self._started, problem) from problem

    def _warn_once(self, now: float, queued: Queued) -> None:
        waited = now - self._started
        claim = self._claim
        if self._warned or self._give_up < math.inf or waited < LONG_WAIT * claim.ttl:
            return
        self._warned = True
        holder = _describe(queued)
        logger.warning(
            "Still waiting for %r on %s after %.0f s, without a timeout; it is held by %s.",
            claim.name,
            self._runtime.engine.location,
            waited,
            holder or "somebody who gave no label",
        )
        self._runtime.tell(
            events.LongWait,
            claim.name,
            mode=claim.mode,
            owner=claim.owner,
            waited=waited,
            holder=holder,
        )


def _describe(queued: Queued) -> str:
    who = queued.holder
    return "" if who is None else f"{who.label} with token {who.token}"


def _unanswered(
    runtime: AsyncRuntime, claim: Claim, started: float, problem: Exception | None
) -> EngineUnavailable:
    waited = runtime.clock() - started
    return EngineUnavailable(
        f"{claim.name!r} was not acquired: {runtime.engine.location} gave no answer for "
        f"{waited:.3g} s ({str(problem).rstrip('.')}). Nothing is held; check that the engine is "
        "up, or try later.",
        name=claim.name,
        engine=runtime.engine.location,
    )


def _closed(runtime: AsyncRuntime, claim: Claim) -> ClientClosed:
    return ClientClosed(
        f"{claim.name!r} was not acquired: the client of {runtime.engine.location} was closed "
        "meanwhile; make a new one.",
        name=claim.name,
        engine=runtime.engine.location,
    )


def _missed(
    runtime: AsyncRuntime, claim: Claim, result: str, started: float, error: str = ""
) -> None:
    if runtime.listeners:
        runtime.tell(
            events.Missed,
            claim.name,
            mode=claim.mode,
            result=result,
            waited=runtime.clock() - started,
            error=error,
            owner=claim.owner,
        )
