"""Redlock on three, five and seven nodes, with two of five dead, and with one that dies."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from functools import partial

from .crew import AnyContestant, CrewFailed
from .grounds import Ground, redis_ground
from .load import Load
from .rounds import TRIAL, take_turns
from .sample import Sample
from .stage import Result, Stage

LENGTH, QUICK_LENGTH = 1.0, 0.6  # seconds around the death of a node
DEATH = 0.3  # seconds after the start


def on_nodes(count: int, dead: int) -> partial[list[Result]]:
    """Return a step: pairs on so many nodes, of which some are dead from the start."""
    return partial(_on_nodes, count, dead)


def _on_nodes(count: int, dead: int, stage: Stage, load: Load, seconds: float) -> list[Result]:
    with ExitStack() as stack:
        ground = _ground(stack, count)
        alive = ground.servers[dead:]
        kinds = [kind for kind in stage.all() if kind.waits or not dead]
        for server in ground.servers[:dead]:
            server.kill()
        there = Ground(ground.place, alive)
        elsewhere = Stage(stage.settings, there, stage.crew)
        return take_turns(elsewhere, kinds, load, seconds)


def kill_node(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Kill one of five nodes under a client at work; each trial has servers of its own."""
    results = [Result(kind) for kind in stage.waiting()]
    for _ in range(1 if stage.quick else 4):
        for result in results:
            if not result.problem:
                _kill_one(stage, result)
    return results


def _kill_one(stage: Stage, result: Result) -> None:
    with ExitStack() as stack:
        ground = _ground(stack, 5)
        kind: AnyContestant = result.kind
        length = QUICK_LENGTH if stage.quick else LENGTH
        try:
            stage.crew.run(kind, ground.place, Load(turns=TRIAL), 0.0)
            death = threading.Timer(DEATH, ground.servers[0].kill)
            death.start()
            try:
                sample = stage.crew.run(kind, ground.place, Load(), length)
            finally:
                death.join()
        except CrewFailed as failed:
            result.problem = str(failed)
            return
        # A closed loop of one client: its longest pair is its longest time without one.
        worst = sample.histograms["pair"].percentile(100) / 1e3
        result.samples.append(Sample(1.0, [0], extra={"stall": worst}))
        result.note = f"{sample.rate:,.0f} pairs/s, the death included"


def _ground(stack: ExitStack, count: int) -> Ground:
    from ...testing.servers import redis_program

    return redis_ground(stack, "redlock", count, redis_program())
