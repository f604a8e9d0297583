"""Which ratios can be believed: each from two interleaved halves of a run, and from two runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from .document import Document, Ratio

TOLERANCE = 0.15
ENOUGH = 0.8  # of the ratios of two runs must agree


class Measured(NamedTuple):
    """A ratio, its two halves, and whether they agree."""

    value: float
    halves: list[float]
    stable: bool


def close(first: float, second: float) -> bool:
    """Say whether two ratios differ by no more than the tolerance, of the smaller one."""
    low, high = sorted((first, second))
    return low > 0 and high <= low * (1 + TOLERANCE) + 1e-9


def measured(ours: Sequence[float], theirs: Sequence[float], *, more: bool) -> Measured | None:
    """Return what ours costs beside theirs, round by round; above 1 ours is behind.

    `more`: the figures are rates, of which more is better. None: no round has both figures.
    """
    ratios = [
        (their / our) if more else (our / their)
        for our, their in zip(ours, theirs, strict=False)
        if our > 0 and their > 0 and math.isfinite(our) and math.isfinite(their)
    ]
    if not ratios:
        return None
    even, odd = ratios[::2], ratios[1::2]
    halves = [median(even), median(odd)] if odd else [median(even)]
    stable = len(halves) == 2 and close(*halves)
    return Measured(median(ratios), halves, stable)


class Difference(NamedTuple):
    """A ratio on which two runs do not agree."""

    what: str
    first: float
    second: float
    marked: bool  # as unstable, by one of them at least


class Agreement(NamedTuple):
    """How far two runs tell the same."""

    common: int  # ratios that both have
    within: int  # the tolerance
    differences: list[Difference]

    @property
    def share(self) -> float:
        """The part of the ratios that agree."""
        return self.within / self.common if self.common else 0.0

    @property
    def enough(self) -> bool:
        """Whether as many agree as a bench must reach."""
        return self.share >= ENOUGH


def name_of(ratio: Ratio) -> str:
    """Return how people and two runs know a ratio."""
    where = f"{ratio['engine']}: {ratio['label']}"
    return f"{where}, {ratio['figure']} beside {ratio['contestant']}"


def agree(first: Document, second: Document) -> Agreement:
    """Compare the ratios of two runs, wherever both have one."""
    ones, others = ({name_of(one): one for one in run["ratios"]} for run in (first, second))
    common = [name for name in ones if name in others]
    differences = [
        Difference(
            name,
            ones[name]["value"],
            others[name]["value"],
            not (ones[name]["stable"] and others[name]["stable"]),
        )
        for name in common
        if not close(ones[name]["value"], others[name]["value"])
    ]
    return Agreement(len(common), len(common) - len(differences), differences)
