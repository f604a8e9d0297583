"""(Generated from _async/chores.py by tools/unasync.py: do not edit.) Chores: releases that nobody waits for, repeated until the engine answers or the TTL is over.

Rule 1: whatever ended without a known outcome (a claim, a release, a dropped lease) comes here.
Rule 2: a chore is repeated at 0.1 s, doubling, with jitter; after one TTL without an answer the
        engine has dropped the claim by itself, which is said in one line. Where nothing expires
        while the process lives (sessions, places in some queues), it is repeated for ever (S34).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from logging import CRITICAL, WARNING
from typing import TYPE_CHECKING

from .. import events, rules
from .._concurrency import ThreadLock, logger
from ..errors import EngineUnavailable, OutcomeUnknown
from ..model import Claim

if TYPE_CHECKING:
    from .runtime import Runtime

TRY_MOST = 1.0  # one try blocks the worker, and so renewals, no longer than this


class _Chore:
    """One release to be done; with `farewell` one last renewal comes first (S15)."""

    __slots__ = ("attempt", "claim", "farewell", "linger", "token", "until")

    def __init__(self, claim: Claim, token: int, linger: float, until: float) -> None:
        self.claim = claim
        self.token = token
        self.linger = linger
        self.until = until
        self.attempt = 0
        self.farewell = False


class Chores:
    """The list of what is still to be given back, by due time."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._clock: Callable[[], float] = runtime.clock
        self._mutex = ThreadLock()
        self._heap: list[tuple[float, int, _Chore]] = []
        self._number = count()

    def add(self, claim: Claim, token: int, linger: float = 0.0, delay: float = 0.0) -> None:
        """Release this claim in the background, after `delay`."""
        now = self._clock()
        engine = self._runtime.engine
        expires = engine.guarantees.expiry != "session" and (token or engine.places_expire)
        until = now + delay + claim.ttl if expires else math.inf
        self._push(now + delay, _Chore(claim, token, linger, until))

    def add_farewell(self, claim: Claim, token: int) -> None:
        """Renew once more now, and release one TTL later unless that is done before."""
        chore = _Chore(claim, token, 0.0, math.inf)
        chore.farewell = True
        self._push(self._clock(), chore)

    def _push(self, due: float, chore: _Chore) -> None:
        with self._mutex:
            heappush(self._heap, (due, next(self._number), chore))

    def next_in(self) -> float:
        """Return the seconds until the next chore is due; infinity if there is none."""
        with self._mutex:
            return max(0.0, self._heap[0][0] - self._clock()) if self._heap else math.inf

    def _take(self, now: float) -> _Chore | None:
        with self._mutex:
            if self._heap and self._heap[0][0] <= now:
                return heappop(self._heap)[2]
            return None

    def run(self) -> None:
        """Do what is due now, each once."""
        now = self._clock()
        while (chore := self._take(now)) is not None:
            self._try(chore, TRY_MOST)

    def finish(self, end: float) -> None:
        """Do all that is left, whether due or not, until `end`."""
        while (chore := self._take(math.inf)) is not None:
            left = end - self._clock()
            if left <= 0:
                return  # the engine's TTL frees the rest
            chore.farewell = False
            chore.until = min(chore.until, end)
            self._try(chore, min(left, TRY_MOST))

    def _try(self, chore: _Chore, most: float) -> None:
        claim = chore.claim
        engine = self._runtime.engine
        limit = min(most, max(0.01, claim.ttl / 3))
        try:
            if chore.farewell:
                self.add(claim, chore.token, delay=claim.ttl)
                engine.renew([claim], limit)
            else:
                engine.release(claim, limit, chore.linger)
        except Exception as error:
            if not isinstance(error, (EngineUnavailable, OutcomeUnknown)):
                logger.exception("A background release failed unexpectedly; it is repeated.")
            if not chore.farewell:
                self._again(chore, str(error))

    def _again(self, chore: _Chore, error: str) -> None:
        now = self._clock()
        pause = rules.retry_release(chore.attempt, self._runtime.chance())
        chore.attempt += 1
        if now + pause < chore.until:
            self._push(now + pause, chore)
            return
        claim = chore.claim
        # A claim without a token was, as far as we know, never granted: worth less of an alarm.
        logger.log(
            CRITICAL if chore.token else WARNING,
            "Giving back %r (token %s) on %s had no answer; its TTL frees it: %s",
            claim.name,
            chore.token or "unknown",
            self._runtime.engine.location,
            error,
        )
        self._runtime.tell_lease(events.ReleaseGaveUp, claim, chore.token, error=error)
