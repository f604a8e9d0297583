"""Redlock on three, five and seven nodes, and with two of five dead."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from .grounds import Ground, redis_ground
from .load import Load
from .rounds import take_turns
from .stage import Result, Stage


def on_nodes(count: int, dead: int) -> partial[list[Result]]:
    """Return a step: pairs on so many nodes, of which some are dead from the start."""
    return partial(_on_nodes, count, dead)


def _on_nodes(count: int, dead: int, stage: Stage, load: Load, seconds: float) -> list[Result]:
    from ...testing.servers import redis_program

    with ExitStack() as stack:
        ground = redis_ground(stack, "redlock", count, redis_program())
        for server in ground.servers[:dead]:
            server.kill()
        alive = Ground(ground.place, ground.servers[dead:])
        kinds = [kind for kind in stage.all() if kind.waits or not dead]
        return take_turns(
            Stage(stage.settings, alive, stage.crew, stage.second), kinds, load, seconds
        )
