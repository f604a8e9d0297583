"""Faults of the network between clients and servers, done by the proxies between them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from ..testing import Harness
from .scene import Scene


def _for_a_while(
    scene: Scene,
    name: str,
    routes: tuple[str, Sequence[Harness]],
    seconds: float,
    begin: Callable[[Harness], None],
) -> None:
    who, links = routes
    with scene.fault(name, f"{who} for {seconds:.1f} s"):
        try:
            for link in links:
                begin(link)
            scene.wait(seconds)
        finally:
            for link in links:
                link.heal()


def cut(scene: Scene, dice: random.Random) -> None:
    """Let nothing pass; what was sent meanwhile arrives late."""
    seconds = dice.choice((0.4, 1.3, 1.6, 2.2)) * scene.pace
    _for_a_while(scene, "cut", scene.routes(dice), seconds, lambda link: link.cut())


def lose_replies(scene: Scene, dice: random.Random) -> None:
    """Let requests arrive and lose the answers: nobody knows what has happened."""
    seconds = dice.uniform(0.3, 2.0) * scene.pace
    _for_a_while(scene, "one-way", scene.routes(dice), seconds, lambda link: link.lose_replies())


def slow(scene: Scene, dice: random.Random) -> None:
    """Delay all answers, up to the time a renewal has."""
    seconds, delay = dice.uniform(1.0, 3.0) * scene.pace, dice.uniform(0.1, 0.3) * scene.pace
    _for_a_while(scene, "slow", scene.routes(dice), seconds, lambda link: link.slow(delay))


def reset(scene: Scene, dice: random.Random) -> None:
    """Break all connections, several times."""
    (who, links), times = scene.routes(dice), dice.randint(1, 4)
    with scene.fault("reset", f"{who}, {times} times"):
        for _ in range(times):
            for link in links:
                link.reset()
            if scene.wait(dice.random() * 0.3 * scene.pace):
                return
