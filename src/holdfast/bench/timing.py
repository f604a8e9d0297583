"""Timing contestants in turns: a slow spell of the machine hits all of them, ratios stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from .floor import Row


def alternate(rounds: int, times: int, *runs: Callable[[], None]) -> list[list[float]]:
    """Run each contestant once per round; return its microseconds per repetition, by round.

    Each `run` does its work `times` times.
    """
    results: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, into in zip(runs, results, strict=True):
            started = time.perf_counter()
            run()
            into.append((time.perf_counter() - started) / times * 1e6)
    return results


def ratio(what: str, floor: list[float], ours: list[float], aim: float | None) -> Row:
    """Return the median of the ratios of each round, with both figures beside it."""
    value = median(one / base for one, base in zip(ours, floor, strict=True))
    note = f"{median(ours):.2f} µs beside {median(floor):.2f} µs, median of {len(ours)} rounds"
    return Row(what, value, "×", aim, note)
