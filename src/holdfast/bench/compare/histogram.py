"""Latencies in buckets half a percent wide: small, addable, exact enough for any percentile."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

_WIDTH = math.log(1.005)
CURVE = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)  # percent


class Histogram:
    """Counts of nanoseconds, read as microseconds."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts or {})

    @classmethod
    def of(cls, nanoseconds: Iterable[int]) -> Histogram:
        """Return one with these values."""
        log = math.log
        return cls(Counter(round(log(one) / _WIDTH) if one > 1 else 0 for one in nanoseconds))

    def __len__(self) -> int:
        return self.counts.total()

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(self.counts + other.counts)

    def percentile(self, percent: float) -> float:
        """Return the microseconds below which so many percent are; NaN of none."""
        total = len(self)
        if not total:
            return math.nan
        wanted, seen = max(1, math.ceil(total * percent / 100 - 1e-9)), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                break
        return math.exp(bucket * _WIDTH) / 1e3

    def curve(self) -> list[list[float]]:
        """Return pairs of percent and microseconds: the distribution, to be drawn."""
        return [[one, round(self.percentile(one), 3)] for one in CURVE] if len(self) else []

    def document(self) -> dict[str, int]:
        """Return it for JSON."""
        return {str(bucket): count for bucket, count in self.counts.items()}

    @classmethod
    def read(cls, document: Mapping[str, int]) -> Histogram:
        """Undo `document`."""
        return cls({int(bucket): count for bucket, count in document.items()})
