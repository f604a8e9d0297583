"""What a seed decides: which fault comes when, and how it goes about it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from .nemesis import AROUND, CLIENTS, Nemesis, clash

SHORTEST_GAP, LONGEST_GAP = 0.1, 0.6  # in units of pace
SHORTEST_STRIKE = 0.2  # likewise: none is over sooner


class Strike(NamedTuple):
    """One fault: after a gap of so many units of pace, with dice of its own."""

    side: str
    gap: float
    nemesis: str
    luck: int

    @property
    def dice(self) -> random.Random:
        """What decides on victims and durations."""
        return random.Random(self.luck)


def make_plan(
    seed: int, nemeses: Sequence[Nemesis], pace: float, seconds: float
) -> dict[str, list[Strike]]:
    """Return the strikes of each side, more than fit into the time: same seed, same strikes."""
    most = int(seconds / (SHORTEST_STRIKE * pace)) + 1
    plan = {}
    for side in (CLIENTS, AROUND):
        dice = random.Random(f"lab {seed} {side}")
        names = [nemesis.name for nemesis in nemeses if nemesis.side == side]
        plan[side] = _round_robin(dice, side, names, most) if names else []
    return plan


def _round_robin(dice: random.Random, side: str, names: list[str], most: int) -> list[Strike]:
    """Let each have its turn, in a new order each time: even a short run sees many kinds."""
    strikes: list[Strike] = []
    while len(strikes) < most:
        for name in dice.sample(names, len(names)):
            gap = dice.uniform(SHORTEST_GAP, LONGEST_GAP)
            strikes.append(Strike(side, gap, name, dice.getrandbits(32)))
    return strikes[:most]


def swarm(seed: int, nemeses: Sequence[Nemesis]) -> list[Nemesis]:
    """Return a random subset that may come together: all at once would hide what some can do."""
    dice = random.Random(f"swarm {seed}")
    chosen: list[Nemesis] = []
    for nemesis in dice.sample(nemeses, len(nemeses)):
        if dice.random() < 0.6 and not any(clash(nemesis, one) for one in chosen):
            chosen.append(nemesis)
    return chosen or list(nemeses[:1])
