"""Time that a run may take, given out step by step: a slow machine does fewer rounds."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """So many seconds from now; `weights` are those of all steps to come."""

    def __init__(
        self, seconds: float, weights: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._total = seconds
        self._weights = weights

    @property
    def left(self) -> float:
        """Seconds that are left; negative when it took too long."""
        return self._end - self._clock()

    @property
    def share(self) -> float:
        """The part that is used up, from 0 to 1."""
        return min(1.0, max(0.0, 1 - self.left / self._total))

    def slice(self, weight: float) -> float:
        """Return the seconds of the next step: its weight's part of what is left."""
        part = self.left * weight / max(weight, self._weights)
        self._weights -= weight
        return max(0.0, part)
