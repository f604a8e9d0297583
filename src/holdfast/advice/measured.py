"""What a lock costs, as measured by `holdfast bench`: figures from measured.json, or none yet.

tools/measured.py writes that file.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Figures:
    """One engine: acquire and release, nobody else there, one client; then as many as it takes."""

    pair_us: float
    pairs_per_second: float
    machine: str
    date: str


@cache
def measured() -> dict[str, Figures]:
    """Return the figures there are, by engine."""
    listed = json.loads((files(__package__) / "measured.json").read_text(encoding="utf-8"))
    return {engine: Figures(**row) for engine, row in listed.items()}


def document(figures: dict[str, Figures]) -> str:
    """Return the text of measured.json."""
    return json.dumps({engine: asdict(row) for engine, row in figures.items()}, indent=2) + "\n"


def cost(engine: str) -> str:
    """Say what a lock costs, or how to find out."""
    found = measured().get(engine)
    if found is None:
        return f"not measured yet on this kind of machine: holdfast bench --engine {engine}"
    return (
        f"{found.pair_us:,.0f} µs for acquire and release, {found.pairs_per_second:,.0f} pairs a "
        f"second ({found.machine}, {found.date}); yours: holdfast bench --engine {engine}"
    )
