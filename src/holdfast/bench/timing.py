"""Timing contestants in turns: a slow spell of the machine hits all of them, ratios stay.

In each round their order is another one: what one leaves behind, in caches and in the scheduler,
is not always found by the same other. After a peer that works in threads five bare scripts took
355 µs instead of 405.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from statistics import median

from .floor import Row


def alternate(rounds: int, times: int, *runs: Callable[[], None]) -> list[list[float]]:
    """Run each contestant once per round; return its microseconds per repetition, by round.

    Each `run` does its work `times` times.
    """
    results: list[list[float]] = [[] for _ in runs]
    turns = list(zip(runs, results, strict=True))
    dice = random.Random(0)  # the same in each run
    for _ in range(rounds):
        dice.shuffle(turns)
        for run, into in turns:
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
