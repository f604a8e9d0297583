"""A server's wall clock as seen from here: between which bounds it runs, and when it was set."""

from __future__ import annotations

import math

STEP = 0.1  # seconds that a clock must jump to count as set
FOR_EVER = 2**53  # microseconds: as late as scripts can count
RATE = 0.001  # how much faster or slower than ours it may run


class ServerClock:
    """Learns from every answer that carries the server's time.

    The server looked at its clock between our sending and our receiving: what it runs ahead of
    ours lies between two bounds, as tight as the answer was quick. What a quicker one told before
    is still true, give or take the drift.
    """

    __slots__ = ("_at", "_high", "_low")

    def __init__(self) -> None:
        self._low = -math.inf
        self._high = math.inf
        self._at = 0.0

    @property
    def known(self) -> bool:
        """Whether the server has told its time."""
        return self._high < math.inf

    def observe(self, sent: float, received: float, micros: int) -> float:
        """Take note of an answer; return by how many seconds the clock was set, 0.0 if not."""
        theirs = micros / 1e6
        low, high = theirs - received, theirs - sent
        drift = RATE * abs(received - self._at)
        before, after = self._low - drift, self._high + drift
        step = 0.0
        if low > after:
            if low > after + STEP:
                step = low - self._high
        elif high < before:
            if high < before - STEP:
                step = high - self._low
        else:
            if low < before:
                low = before
            if high > after:
                high = after
        self._low, self._high, self._at = low, high, received
        return step

    def latest(self, now: float) -> int:
        """Return microseconds that the server's clock says at `now` at most, as far as known."""
        if self._high == math.inf:
            return FOR_EVER
        return int((self._high + now + 0.001 + RATE * (now - self._at)) * 1e6)

    def middle(self, now: float) -> float:
        """Return what the server's clock says at `now`, in seconds, as well as we know."""
        return (self._low + self._high) / 2 + now

    @property
    def uncertainty(self) -> float:
        """By how many seconds `middle` may be wrong."""
        return (self._high - self._low) / 2
