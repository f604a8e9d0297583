"""Documents of runs that never were, for what is made of them."""

from __future__ import annotations

from holdfast.bench.compare.document import Document, Ratio, Row
from holdfast.bench.compare.run import settings_for


def row(**fields: object) -> Row:
    """Return a row of ours, with other fields as said."""
    made: dict[str, object] = {
        "engine": "redis",
        "scenario": "pair",
        "label": "uncontended pair",
        "style": "threads",
        "loop": "closed",
        "clients": 1,
        "contestant": "holdfast",
        "role": "ours",
        "lacks": "",
        "rounds": 4,
        "figures": {"acquire p50": 100.0, "acquire p99": 2_500.0, "pairs/s": 4_321.0},
        "curve": [[p, 100.0 + p] for p in (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)],
        "note": "",
        "problem": "",
    }
    return made | fields  # type: ignore[return-value]


def ratio(value: float, **fields: object) -> Ratio:
    """Return a ratio beside kazoo, with other fields as said."""
    made: dict[str, object] = {
        "engine": "redis",
        "scenario": "pair",
        "label": "uncontended pair",
        "style": "threads",
        "clients": 1,
        "figure": "pair p50",
        "contestant": "kazoo Lock",
        "role": "peer",
        "value": value,
        "halves": [value, value],
        "stable": True,
        "few": False,
    }
    return made | fields  # type: ignore[return-value]


def document(rows: list[Row], ratios: list[Ratio]) -> Document:
    """Return a document with these."""
    return {
        "version": 1,
        "made": "2026-01-01T00:00:00+00:00",
        "holdfast": "0.1.0",
        "machine": {"cores": 2, "cpu": "any", "system": "Linux", "kernel": "6", "python": "3.11"},
        "servers": {"redis": "7.0"},
        "packages": {"redis": "5.0"},
        "settings": settings_for(["redis"], quick=True),
        "took": 12.0,
        "rows": rows,
        "ratios": ratios,
    }
