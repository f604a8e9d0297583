"""Contestants in turns, a round each: a slow spell of the machine hits all of them.

Even and odd rounds are run by processes of their own. What one process is slower by for as long as
it lives, nobody knows why, is then seen: the two halves of a ratio do not agree.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ..contestant import Place
from .crew import AnyContestant, Crew, CrewFailed
from .load import HOT, TASKS, THREADS, Load
from .stage import FEW, Result, Stage

TRIAL = 3  # turns of each client: connections, scripts, tables, what Java compiles
LEAST, MOST = 0.05, 0.5  # seconds of one contestant in one round
LEAST_LONG = 0.2  # where a lock has to go round, or a request takes long
CROWDED, MOST_CROWDED = 1.0, 2.0  # where a crowd has to line up first
ROUND_TURNS = 10  # of each who wants the one key, at the pace of one who is alone
ROUNDS, QUICK_ROUNDS = 24, 4
MOST_ROUNDS = 40
HALVES = 2  # rounds that there are in any case
MARGIN = 0.02  # seconds that a round takes besides


def take_turns(
    stage: Stage,
    kinds: Sequence[AnyContestant],
    load: Load,
    seconds: float,
    place: Place | None = None,
) -> list[Result]:
    """Let contestants work under a load, one after the other, again and again, for so long."""
    results = [Result(kind) for kind in kinds]
    end = time.monotonic() + seconds
    where = place or stage.ground.place
    # Those who poll would take seconds to try one lock in turns: one of them has to do.
    alone = {"clients": 1, "style": THREADS} if load.keys == HOT else {}
    trial = replace(load, rate=None, turns=TRIAL, **alone)  # type: ignore[arg-type]
    crews = stage.crews(load)
    with stage.apart(load):
        for result in results:
            for crew in dict.fromkeys(crews):
                _try(stage, crew, result, where, trial, 0.0, 0.0)
            result.samples.clear()
        each = _seconds_each(stage, results, load, end - time.monotonic())
        warm = _warm(each, load)
        needed = 0.0
        for number in range(MOST_ROUNDS):
            able = [result for result in results if not result.problem]
            began = time.monotonic()
            late = end + seconds if number < HALVES else end - needed
            if not able or (number and began > late):
                break
            for result in able if number % 2 == 0 else reversed(able):
                _try(stage, crews[number % 2], result, where, load, each, warm)
            # Those who poll take their time to notice that a round is over.
            needed = time.monotonic() - began
    return results


def _seconds_each(stage: Stage, results: Sequence[Result], load: Load, left: float) -> float:
    able = sum(not result.problem for result in results)
    rounds = QUICK_ROUNDS if stage.quick else ROUNDS
    long = load.keys == HOT or load.work or load.clients > FEW
    least = LEAST_LONG if long else LEAST
    if stage.rate and not stage.quick:
        least = max(least, min(ROUND_TURNS / stage.rate, MOST))
    if load.keys == HOT and not stage.quick:
        turns = load.clients * ROUND_TURNS / max(1.0, stage.rate)
        least = max(least, min(turns, MOST_CROWDED), CROWDED if load.clients > FEW else 0.0)
    return max(least, min(MOST, left / max(1, able * rounds) - MARGIN))


def _warm(each: float, load: Load) -> float:
    """Return the seconds before a round counts: until all have lined up."""
    if load.keys != HOT:
        return each / 4 if load.clients > FEW else 0.0
    return each / 2 if load.clients > FEW else each / 10


def _try(
    stage: Stage,
    crew: Crew,
    result: Result,
    place: Place,
    load: Load,
    seconds: float,
    warm: float,
) -> None:
    if result.problem:
        return
    result.problem = stage.ground.problem()
    if result.problem:
        return
    try:
        sample = crew.run(result.kind, place, load, seconds, warm)
    except CrewFailed as failed:
        result.problem = stage.ground.problem() or str(failed)
    else:
        result.samples.append(sample)


def style_for(engine: str, style: str) -> str:
    """Return how clients are made there: memory:// is inside one process."""
    return style if engine != "memory" or style == TASKS else THREADS
