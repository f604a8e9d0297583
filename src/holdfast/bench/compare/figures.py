"""The figures of a row: their units, their names for people, and how they follow from samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from .histogram import Histogram
from .sample import ACQUIRE, HANDOVER, PAIR, READ, RELEASE, RESPONSE, WRITE, Sample

PERCENTS = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}


class Figure(NamedTuple):
    """What a figure is called, its unit, whether more of it is better, and whether it is of what
    happens seldom: who polls hands over a few times in a round, or not at all."""

    title: str
    unit: str
    more: bool = False
    rare: bool = False


FIGURES: dict[str, Figure] = {
    **{
        f"{what} {name}": Figure(f"{what} {name}", "µs", rare=what == HANDOVER)
        for what in (ACQUIRE, RELEASE, PAIR, RESPONSE, READ, WRITE, HANDOVER)
        for name in PERCENTS
    },
    "pairs/s": Figure("pairs/s", "/s", more=True),
    "hand-overs/s": Figure("hand-overs/s", "/s", more=True, rare=True),
    "fairness": Figure("turns of a contender, max/min", "×"),
    "least turns": Figure("fewest turns of a contender", "", more=True),
    "most turns": Figure("most turns of a contender", ""),
    "at once": Figure("two held it at once", ""),
    "unserved": Figure("requests never begun", ""),
    "share": Figure("share of the request", "%"),
    "contended/free": Figure("acquire p99, contended ÷ uncontended", "×"),
    "requests/pair": Figure("requests per pair", ""),
    "recovery": Figure("until the next holder", "ms"),
    "stall": Figure("longest time without a pair", "ms"),
    "client CPU": Figure("CPU of the client per 1,000 renewals", "ms"),
    "server CPU": Figure("CPU of the servers per 1,000 renewals", "ms"),
    "client share": Figure("of a core, for 1,000 leases at ttl=30 s", "%"),
}


def figures_of(samples: Sequence[Sample]) -> dict[str, float]:
    """Return all figures of a contestant: percentiles and hand-overs of all rounds, medians of the
    rest."""
    found: dict[str, float] = {}
    for what, histogram in histograms_of(samples).items():
        for name, percent in PERCENTS.items():
            found[f"{what} {name}"] = histogram.percentile(percent)
    found["pairs/s"] = median(sample.rate for sample in samples)
    if any(sample.handovers or sample.holds for sample in samples):
        seconds = sum(sample.seconds for sample in samples)
        found["hand-overs/s"] = handovers(samples) / seconds
        found["at once"] = sum(sample.overlaps for sample in samples)
    if not all(math.isnan(sample.share) for sample in samples):
        found["share"] = median(sample.share for sample in samples) * 100
    if RESPONSE in samples[0].histograms:
        found["unserved"] = sum(sample.unserved for sample in samples)
    for name in {name for sample in samples for name in sample.extra}:
        found[name] = median(sample.extra[name] for sample in samples if name in sample.extra)
    return found


def handovers(samples: Sequence[Sample]) -> int:
    """Return how often a lock went from one client to another."""
    return sum(sample.handovers for sample in samples)


def figure_of(samples: Sequence[Sample], figure: str) -> float:
    """Return one figure of several rounds; NaN if they have none."""
    return figures_of(samples).get(figure, math.nan) if samples else math.nan


def fairness_of(samples: Sequence[Sample]) -> dict[str, float]:
    """Return how evenly the contenders were served, over all rounds."""
    turns = [sum(counts) for counts in zip(*(sample.counts for sample in samples), strict=True)]
    least, most = min(turns), max(turns)
    fairness = most / least if least else math.inf
    return {"fairness": fairness, "least turns": least, "most turns": most}


def histograms_of(samples: Sequence[Sample]) -> dict[str, Histogram]:
    """Return the latencies of all rounds together."""
    whole: dict[str, Histogram] = {}
    for sample in samples:
        for name, histogram in sample.histograms.items():
            whole[name] = whole.get(name, Histogram()) + histogram
    return {name: histogram for name, histogram in whole.items() if len(histogram)}
