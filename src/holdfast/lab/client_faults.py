"""Faults of client processes: stopped, blocked, killed, forked, their clocks set."""

from __future__ import annotations

import random

from ..clocks import boot_clock
from .assignment import ASYNC, SYNC
from .fleet import Member
from .orders import BLOCK, FORK, GRANTED, READ, STAND_STILL
from .scene import Scene

PAUSES = (0.5, 0.8, 1.1, 1.5, 3.0)  # in TTLs
AT_FAILPOINT = 0.7  # of all pauses hit a holder between grant and use, or read and write
OBEYS_WITHIN = 2.0  # seconds
STEPS = (-3600.0, -1.0, 1.0, 3600.0)  # seconds


def pause(scene: Scene, dice: random.Random) -> None:
    """Stop a client, at a failpoint or wherever it is; of a command, one of its processes."""
    victims = dice.sample(found := scene.fleet.victims(), min(len(found), dice.choice((1, 2))))
    seconds = dice.choice(PAUSES) * scene.pace
    at_failpoint, where = dice.random() < AT_FAILPOINT, dice.choice((GRANTED, READ))
    who = ", ".join(victim.name for victim in victims)
    with scene.fault("pause", f"{who} for {seconds:.1f} s"):
        try:
            for victim in victims:
                _stop(victim, where if at_failpoint else "", dice.random())
            for _ in range(int(OBEYS_WITHIN / 0.01) if at_failpoint else 0):
                if all(victim.stands_still() for victim in victims) or scene.wait(0.01):
                    break
            scene.wait(seconds)
        finally:
            for victim in victims:
                victim.go_on()


def _stop(victim: Member, where: str, choice: float) -> None:
    """Stop a client at this failpoint, or at once."""
    if where and victim.colour in (SYNC, ASYNC):
        victim.tell(STAND_STILL, where=where, until=boot_clock() + OBEYS_WITHIN)
        return
    pid = victim.heart(choice)
    if pid is not None:
        victim.stop(pid)


def block(scene: Scene, dice: random.Random) -> None:
    """Let a client block its own event loop, or all of its threads."""
    _order(scene, dice, BLOCK, dice.choice(PAUSES[2:]) * scene.pace)


def fork(scene: Scene, dice: random.Random) -> None:
    """Let a client fork; the child lives for a TTL."""
    _order(scene, dice, FORK, scene.pace)


def _order(scene: Scene, dice: random.Random, do: str, seconds: float) -> None:
    victims = scene.fleet.victims(SYNC, ASYNC)
    if not victims:
        return
    victim = dice.choice(victims)
    with scene.fault(do, f"{victim.name} for {seconds:.1f} s"):
        victim.tell(do, seconds=seconds, where=dice.choice((GRANTED, READ)))
        scene.wait(seconds + 0.2)


def kill(scene: Scene, dice: random.Random) -> None:
    """Kill a client, and start another; of a command, one of its processes."""
    victims = scene.fleet.victims()
    if not victims:
        return
    victim = dice.choice(victims)
    pid = victim.heart(dice.random())
    if pid is None:
        return
    with scene.fault("kill", victim.name):
        scene.fleet.kill(victim, pid)
        scene.wait(dice.choice((0.0, 0.3)) * scene.pace)
        if victim.killed and not scene.over.is_set():
            scene.fleet.replace(victim)


def step_clock(scene: Scene, dice: random.Random) -> None:
    """Set the wall clock of one client, or of all, and then right again."""
    victims = scene.fleet.victims(SYNC, ASYNC)
    if victims and dice.random() < 0.5:
        victims = [dice.choice(victims)]
    seconds = dice.choice(STEPS)
    who = ", ".join(victim.name for victim in victims)
    with scene.fault("client-clock", f"{who} by {seconds:+g} s"):
        try:
            for victim in victims:
                victim.set_clock(seconds)
            scene.wait(dice.uniform(0.5, 3.0) * scene.pace)
        finally:
            for victim in victims:
                victim.set_clock(0)
