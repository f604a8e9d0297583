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
    """Return the ratio of the medians, with both figures beside it.

    Rounds are short and many: a machine that changes its speed does so for both.
    """
    mine, base = median(ours), median(floor)
    note = f"{mine:.2f} µs beside {base:.2f} µs, medians of {len(ours)} rounds"
    return Row(what, mine / base, "×", aim, note)
