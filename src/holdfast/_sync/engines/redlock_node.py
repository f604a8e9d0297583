"""(Generated from _async/engines/redlock_node.py by tools/unasync.py: do not edit.) One node of a Redlock: how it has answered lately, when to leave it alone, what it is owed."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from ... import events
from ...clocks import Clock
from ...redis_link import Greeting, Settings, Template, packed_word
from ...redis_record import micros
from ..redis_node import RedisNode
from .redlock_question import Inquiry

AWAY_FIRST = 0.5  # seconds a silent node is left alone, doubling
AWAY_MOST = 5.0
AWAY_GRID = 0.125  # seconds: who went together is tried again together, for one time-out
OWED_MOST = 1000


class RedlockNode(RedisNode):
    """One node, and how it has answered lately."""

    def __init__(self, settings: Settings, clock: Clock, **rules: Any) -> None:
        super().__init__(settings, clock, quarantine=False, **rules)
        self.number = 0
        self.errors = 0  # requests without an answer, in all
        self.error: Exception | None = None  # why there was none, if the last one had none
        self.greeted_at = 0.0
        self.changed_at = -math.inf  # when it was last found to be another run than before
        self.run_word = b"$0\r\n\r\n"  # its run id, packed
        self.terms_word = b"$0\r\n\r\n"  # what its roster must say: max_ttl, nodes, its run id
        self.companions = 0  # how many nodes there are in all
        self.scripts: set[bytes] = set()  # what it was taught, by digest
        self.on_new: Callable[[], None] = lambda: None
        self._failures = 0
        self._away_until = 0.0
        self._silent_for = 0.0  # the longest time-out that it has not kept since it last answered
        # What it must still be told; the latest is at the end.
        self._owed: deque[Inquiry] = deque(maxlen=OWED_MOST)

    def _greeted(self, greeting: Greeting, sent: float, received: float) -> None:
        super()._greeted(greeting, sent, received)
        self.greeted_at = received
        word = packed_word(greeting.run_id)
        if word != self.run_word:
            self.run_word, self.changed_at = word, received
        if received == self.changed_at or not greeting.run_id:
            self.scripts.clear()  # a server forgets them with its end
        terms = f"{micros(self._max_ttl)} {self.companions} {greeting.run_id}"
        self.terms_word = packed_word(terms)
        self.on_new()

    def _keep_out(self, until: float, why: str) -> None:
        super()._keep_out(until, why)
        self.on_new()

    def teach(self, template: Template) -> bytes:
        """Return the beginning of a request that teaches it a script; it counts as known then."""
        self.scripts.add(template.digest)
        return template.in_full()

    def uptime(self) -> float:
        """Return for how many seconds the server has been running, at least."""
        return self.greeting.uptime + self._clock() - self.greeted_at

    def latest(self, ahead: float) -> int:
        """Return what its clock says at most in `ahead` seconds, in microseconds."""
        return self.clock.latest(self._clock() + ahead)

    def away(self, now: float, patience: float = 0.0) -> bool:
        """Say whether it is better not to ask now.

        Who is more patient than those who had no answer asks all the same.
        """
        return now < self._away_until and patience <= self._silent_for

    @property
    def latency(self) -> float:
        """How many seconds its last answer took, about; infinity if there was none yet."""
        return self.link.latency

    def answered(self) -> None:
        """Take note of an answer."""
        self.error = None
        self._failures = 0
        self._away_until = self._silent_for = 0.0

    def complaint(self, now: float) -> str:
        """Return why its answer does not count."""
        if self.error is None and self.out(now):
            return str(self.kept_out(now))
        return str(self.error or f"{self.location} was not asked")

    @property
    def troubled(self) -> bool:
        """Whether it needs more than to be asked."""
        return self.error is not None or bool(self._owed) or not self.greeting.run_id

    def owe(self, inquiry: Inquiry) -> bool:
        """Keep what this node could not be told for the time when it is back, if it must know."""
        if inquiry.until <= inquiry.sent or self.number in inquiry.spared:
            return False
        self._owed.append(inquiry)
        return True

    def debt(self, now: float) -> Inquiry | None:
        """Return the latest that is still owed, and owe it no longer."""
        while self._owed:
            inquiry = self._owed.pop()
            if now < inquiry.until:
                return inquiry
        return None

    def failed(self, now: float, error: Exception, patience: float) -> None:
        """Take note that there was no answer in that many seconds."""
        self._silent_for = max(self._silent_for, patience)
        self.errors += 1
        self.error = error
        if now >= self._away_until:  # else many have asked at the same time
            back = now + min(AWAY_MOST, AWAY_FIRST * 2**self._failures)
            self._away_until = math.ceil(back / AWAY_GRID) * AWAY_GRID
            self._failures += 1
        if self.report is not None:
            self.report(events.NodeFailed, node=self.location, error=str(error))
