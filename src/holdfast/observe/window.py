"""The part of attempts that ended in vain in the last five minutes; time is an argument."""

from __future__ import annotations

from collections import deque

SPAN = 300.0  # seconds
STEP = 10.0  # seconds between two looks that are kept


class Window:
    """Counts attempts, and compares with what it had counted when it was looked at before.

    A number that two threads raise at the same instant may rise once: this is a ratio to look at,
    and no alarm uses it. Rates over counters, which are exact, do that.
    """

    __slots__ = ("_looks", "attempts", "in_vain")

    def __init__(self, at: float) -> None:
        self.attempts = 0
        self.in_vain = 0
        self._looks = deque([(at, 0, 0)])  # when, and what was counted by then

    def ratio(self, at: float) -> float:
        """Return the part in vain since five minutes ago, or since the last look before that."""
        looks, attempts, in_vain = self._looks, self.attempts, self.in_vain
        if at < looks[-1][0]:  # the clock was set back
            looks = self._looks = deque([(at, attempts, in_vain)])
        while len(looks) > 1 and looks[1][0] <= at - SPAN:
            looks.popleft()
        _, attempts_before, in_vain_before = looks[0]
        if at - looks[-1][0] >= STEP:
            looks.append((at, attempts, in_vain))
        lately = attempts - attempts_before
        return (in_vain - in_vain_before) / lately if lately else 0.0
