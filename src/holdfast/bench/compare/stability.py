"""Which ratios can be believed: each from two interleaved halves of a run, and from two runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

from .document import Document, Ratio

TOLERANCE = 0.15
STEADY = 0.10  # halves share what lasts for longer than a round, so they must differ by less
FAR = 10.0  # times: beyond that a ratio is told as "more than", and its digits say nothing
ENOUGH = 0.8  # of the ratios of two runs must agree
COUNTED = 200  # hand-overs whose rate two runs know within the tolerance, as a rule (√n of n)

Round = TypeVar("Round")


class Measured(NamedTuple):
    """A ratio, its two halves, and whether they agree."""

    value: float
    halves: list[float]
    stable: bool


def close(first: float, second: float, tolerance: float = TOLERANCE) -> bool:
    """Say whether two ratios differ by no more than the tolerance, of the smaller one, as told."""
    low, high = sorted(told(one) for one in (first, second))
    return low > 0 and high <= low * (1 + tolerance) + 1e-9


def told(ratio: float) -> float:
    """Return a ratio as people are told it: ten times and a thousand times are both far."""
    return min(max(ratio, 1 / FAR), FAR) if ratio > 0 else ratio


def believable(ratio: float, counted: int, *, more: bool) -> bool:
    """Say whether a ratio of what happened `counted` times, on the rarer side, is one.

    How often something happens is far from how often something else does, however few there were;
    how long it takes is not known from a few.
    """
    return counted >= COUNTED or (more and told(ratio) != ratio)


def measured(
    ours: Sequence[Round],
    theirs: Sequence[Round],
    figure: Callable[[Sequence[Round]], float],
    *,
    more: bool,
    rare: bool = False,
) -> Measured | None:
    """Return what ours costs beside theirs, by a figure of rounds; above 1 ours is behind.

    Each round gives a ratio, and the median counts: slow spells of the machine hit both. What is
    `rare` happens too seldom in one round, and is taken from all of them together.
    `more`: the figure is a rate, of which more is better. None: somebody has no such figure.
    """

    def beside(first: int, step: int) -> float:
        mine, others = ours[first::step], theirs[first::step]
        parts = [(mine, others)]
        if not rare:
            parts = [([our], [their]) for our, their in zip(mine, others, strict=False)]
        both = [(figure(our), figure(their)) for our, their in parts]
        ratios = [their / our if more else our / their for our, their in both if our > 0 < their]
        return median(ratios) if ratios else math.nan

    value = beside(0, 1)
    if not math.isfinite(value):
        return None
    if min(len(ours), len(theirs)) < 2:
        return Measured(value, [value], stable=False)
    halves = [half for half in (beside(0, 2), beside(1, 2)) if math.isfinite(half)]
    return Measured(value, halves, len(halves) == 2 and close(halves[0], halves[1], STEADY))


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


def same(first: Ratio, second: Ratio) -> bool:
    """Say whether two runs tell the same: a ratio, or of few hand-overs only who is ahead."""
    one, other = first["value"], second["value"]
    if first["few"] or second["few"]:
        return (one > 1) == (other > 1)
    return close(one, other)


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
        if not same(ones[name], others[name])
    ]
    return Agreement(len(common), len(common) - len(differences), differences)
