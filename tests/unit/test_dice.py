"""The library's dice are its own: the program's `random` neither steers nor notices them."""

from __future__ import annotations

import multiprocessing
import random
from multiprocessing.connection import Connection

import pytest

import holdfast
from holdfast import dice


def test_the_programs_random_is_left_alone() -> None:
    """A program that seeds `random` to repeat a result repeats it, whatever is locked meanwhile."""
    random.seed(1)
    before = random.getstate()
    with holdfast.connect("memory://") as client, client.lock("x", ttl=0.06) as lease:
        lease.extend(1.0)
        dice.chance()
    assert random.getstate() == before


def test_a_seeded_program_does_not_steer_ours() -> None:
    """Workers that all seed `random` alike do not all knock at the same moment."""
    rolls = []
    for _ in range(2):
        random.seed(1)
        rolls.append([dice.chance() for _ in range(4)])
    assert rolls[0] != rolls[1]


def _roll(answer: Connection) -> None:
    answer.send([dice.chance() for _ in range(4)])


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork"
)
def test_children_of_a_fork_roll_their_own() -> None:
    """A pool of forked workers does not retry in step."""
    context, rolls = multiprocessing.get_context("fork"), []
    for _ in range(2):
        mine, theirs = context.Pipe()
        child = context.Process(target=_roll, args=(theirs,))
        child.start()
        rolls.append(mine.recv())
        child.join(10)
    assert rolls[0] != rolls[1]
