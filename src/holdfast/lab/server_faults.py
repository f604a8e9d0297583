"""Faults of servers: stopped, killed, forgetful, with another clock, replaced by a replica."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from ..testing import Harness
from .scene import Scene

HOUR = 3600.0


def pause(scene: Scene, dice: random.Random) -> None:
    """Stop servers."""
    parts, seconds = scene.some(dice), dice.uniform(0.2, 2.0) * scene.pace
    with scene.fault("server-pause", f"{scene.name(parts)} for {seconds:.1f} s"):
        try:
            for part in parts:
                part.pause()
            scene.wait(seconds)
        finally:
            for part in parts:
                part.resume()


def restart(scene: Scene, dice: random.Random) -> None:
    """Kill servers and start them with what they have on disk."""
    _hit(scene, "restart", scene.minority(dice), lambda part: part.restart(keep_data=True))


def forget(scene: Scene, dice: random.Random) -> None:
    """Kill servers and start them with nothing."""
    if not _settle(scene):
        _hit(scene, "forget", scene.minority(dice), lambda part: part.forget())


def forget_all(scene: Scene, dice: random.Random) -> None:
    """Kill all servers and start them with nothing."""
    _hit(scene, "forget-all", scene.parts, lambda part: part.forget())


def flush(scene: Scene, dice: random.Random) -> None:
    """Delete everything."""
    if not _settle(scene):
        _hit(scene, "flush", scene.minority(dice), lambda part: part.flush())


def evict(scene: Scene, dice: random.Random) -> None:
    """Let all servers throw out what they have."""
    _hit(scene, "evict", scene.parts, lambda part: part.evict())


def kick(scene: Scene, dice: random.Random) -> None:
    """Close all connections, and forget scripts."""
    _hit(scene, "kick", scene.some(dice), lambda part: part.kick())


def roll_back(scene: Scene, dice: random.Random) -> None:
    """Copy the data, wait, and go on with the copy."""
    if _settle(scene):
        return
    parts = scene.minority(dice)
    for part in parts:
        part.keep_copy()
    if not scene.wait(dice.uniform(0.2, 1.0) * scene.pace):
        _hit(scene, "roll-back", parts, lambda part: part.roll_back())


def _settle(scene: Scene) -> bool:
    """Let leases come back to servers that were out of reach until now: a minority may forget, not
    one minority while another has never heard of them. Return whether the run is over."""
    return scene.wait(scene.harness.recovery)


def _hit(
    scene: Scene, name: str, parts: Sequence[Harness], strike: Callable[[Harness], None]
) -> None:
    """Strike each server, and give those that forgot the time they need to count again."""
    with scene.fault(name, scene.name(parts)):
        for part in parts:
            strike(part)
    scene.wait(scene.harness.recovery)


def step_clock(scene: Scene, dice: random.Random) -> None:
    """Set the clock of one server, and then right again."""
    part = dice.choice(scene.parts)
    seconds = dice.choice((-HOUR, -scene.pace, scene.pace, HOUR))
    with scene.fault("server-clock", f"{scene.name([part])} by {seconds:+g} s"):
        try:
            part.step_clock(seconds)
            scene.wait(dice.uniform(0.5, 2.0) * scene.pace)
        finally:
            part.step_clock(0)


def fail_over(scene: Scene, dice: random.Random) -> None:
    """Cut a replica off for a moment, and let it take over."""
    part = dice.choice(scene.parts)
    with scene.fault("failover", scene.name([part])):
        part.part_replica()
        scene.wait(dice.uniform(0.1, 0.6) * scene.pace)
        part.fail_over()
    scene.wait(scene.harness.recovery)
