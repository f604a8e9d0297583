"""What one contestant did in one round: latencies, turns of each client, hand-overs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from .histogram import Histogram
from .load import HOT, Load

ACQUIRE, RELEASE, PAIR = "acquire", "release", "pair"
RESPONSE, READ, WRITE, HANDOVER, LOCKS = "response", "read", "write", "hand-over", "locks"


class Turn(NamedTuple):
    """One request, by the clock of this machine, in nanoseconds."""

    intended: int  # when it should have begun
    started: int
    held: int
    releasing: int
    done: int
    reads: bool = False


Hold = tuple[int, int, int]  # client, held from, release begun


@dataclass
class Sample:
    """Figures of one round; parts of several processes can be joined."""

    seconds: float
    counts: list[int]  # turns done in time, by client
    histograms: dict[str, Histogram] = field(default_factory=dict)
    holds: list[Hold] = field(default_factory=list)
    unserved: int = 0  # requests that were due and never begun
    overlaps: int = 0  # two who held the same lock at once
    handovers: int = 0
    share: float = math.nan  # of a request's time that went to locks
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Turns per second."""
        return sum(self.counts) / self.seconds

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        histograms = {name: one.document() for name, one in self.histograms.items()}
        return {**vars(self), "histograms": histograms}

    @classmethod
    def read(cls, document: dict[str, Any]) -> Sample:
        """Undo `document`."""
        found = {name: Histogram.read(one) for name, one in document["histograms"].items()}
        holds = [(client, held, done) for client, held, done in document["holds"]]
        return cls(**{**document, "histograms": found, "holds": holds})


def sample_of(load: Load, turns: Sequence[Sequence[Turn]], begin: int, end: int) -> Sample:
    """Return what the clients of one process did between two instants.

    Rates count what was done in time; latencies count all that was begun in time, however late it
    was done: else the slowest would be left out.
    """
    counts = [sum(begin <= turn.done < end for turn in mine) for mine in turns]
    mine = [turn for some in turns for turn in some if begin <= turn.intended < end]
    spans: dict[str, Iterable[int]] = {
        ACQUIRE: (one.held - one.started for one in mine),
        RELEASE: (one.done - one.releasing for one in mine),
        PAIR: (one.done - one.releasing + one.held - one.started for one in mine),
    }
    if load.rate is not None:
        spans[RESPONSE] = (one.held - one.intended for one in mine)
    if load.reads is not None:
        spans[READ] = (one.held - one.started for one in mine if one.reads)
        spans[WRITE] = (one.held - one.started for one in mine if not one.reads)
    sample = Sample((end - begin) / 1e9, counts)
    sample.histograms = {name: Histogram.of(values) for name, values in spans.items()}
    if load.work:
        locks = sum(one.held - one.started + one.done - one.releasing for one in mine)
        sample.share = locks / max(1, sum(one.done - one.started for one in mine))
    if load.keys == HOT and load.reads is None:
        sample.holds = [
            (load.first + client, turn.held, turn.releasing)
            for client, some in enumerate(turns)
            for turn in some
            if begin <= turn.held < end
        ]
    return sample


def joined(parts: Sequence[Sample]) -> Sample:
    """Return what all processes did together in the same round."""
    whole = Sample(parts[0].seconds, [one for part in parts for one in part.counts])
    for part in parts:
        for name, histogram in part.histograms.items():
            whole.histograms[name] = whole.histograms.get(name, Histogram()) + histogram
        whole.unserved += part.unserved
        whole.extra |= part.extra
    whole.share = parts[0].share
    holds = sorted((hold for part in parts for hold in part.holds), key=lambda hold: hold[1])
    if holds:
        latencies, whole.overlaps = hand_overs(holds)
        whole.handovers = len(latencies)
        whole.histograms[HANDOVER] = Histogram.of(latencies)
    return whole


def hand_overs(holds: Sequence[Hold]) -> tuple[list[int], int]:
    """Return the nanoseconds from each release to the next holder, and how often two held at once.

    Only what goes from one client to another counts: who polls and finds the lock free has mostly
    just let go of it itself.
    """
    latencies, overlaps = [], 0
    for (before, _, released), (after, held, _) in pairwise(holds):
        if before == after:
            continue
        if held < released:
            overlaps += 1
        else:
            latencies.append(held - released)
    return latencies, overlaps
